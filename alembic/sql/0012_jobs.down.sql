DROP INDEX memories_by_successor;
DROP VIEW background_jobs;
DROP TABLE job_failures;
DROP FUNCTION forget_jobs, enqueue_job, job_waits, own_job_lock;
DROP INDEX agentcore_jobs_by_agent;
