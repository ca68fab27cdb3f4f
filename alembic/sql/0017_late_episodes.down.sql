DROP TABLE late_episodes;
