// Written by scripts/write_typescript.py from the OpenRPC document.

import type { CallOptions, ClientOptions, TokenSource } from "./connection.js";
export type { CallOptions, ClientOptions, TokenSource } from "./connection.js";

/** An action and its outcome. */
export interface ActionOutcome {
  action: string;
  outcome: string;
}

/** Messages to add to a session: one memory each. */
export interface AddSessionParams {
  session_id: string;
  messages: Message[];
  user_id?: string | null;
  namespace?: string | null;
  task_id?: string | null;
  tags?: string[];
  /** Seconds until they expire; null: never. Absent: the default of the episodic layer. */
  ttl_seconds?: number | null;
  /** As for memory.store, for each message. */
  keep_reasoning?: boolean;
  /** Also store greetings, small talk and duplicates. */
  force?: boolean;
}

export interface AddSessionResult {
  /** False if a message is invalid. Messages without content worth storing are skipped. */
  success: boolean;
  session_id: string;
  stored_count: number;
  /** One result for each message, in order. */
  results: StoreResult[];
  receipt: Receipt;
}

/** One archived memory: the index entry, without its archived copy. */
export interface ArchivedMemory {
  memory_id: string;
  memory_type: MemoryType;
  version: number;
  /** Null if archived by an older version. */
  timestamp?: string | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | null;
  namespace?: string | null;
  tags?: string[];
  object_key: string;
  /** SHA-256 of the compressed copy before encryption, hexadecimal. */
  sha256: string;
  /** Size of the compressed copy. */
  size_bytes: number;
  /** The pruning strategy that archived it. */
  reason: string;
  archived_at: string;
  /** The archive that contains the copy. */
  archive_id: string;
  /** True: the copy is not in this server's archive, so it can neither restore nor erase it. Null: the archive is not available. */
  elsewhere?: boolean | null;
}

/** Filters and page size. */
export interface ArchivedParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  tags?: string[] | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  /** Archived at or after this time. */
  archived_after?: string | null;
  /** Archived before this time. */
  archived_before?: string | null;
  limit?: number;
  /** `next_cursor` of the previous page. */
  cursor?: string | null;
}

export interface ArchivedResult {
  /** Most recently archived first. */
  memories: ArchivedMemory[];
  next_cursor: string | null;
  receipt: Receipt;
}

/** No params. */
export interface CapabilitiesParams {
}

export interface CapabilitiesResult {
  version: string;
  embedding_model: string | null;
  embedding_dimensions: number | null;
  vector_store: string;
  archive: string;
  memory_types: MemoryType[];
  pruning_strategies: string[];
  limits: Record<string, number>;
  /** Names of optional features that are on. With a language model: model_facts (extracts facts), model_summaries (of sessions and clusters), model_judge (decides about superseded facts). */
  features: string[];
  receipt: Receipt;
}

/** The job, and what to do with it. */
export interface ChangeJobParams {
  job_id: number;
  /** retry: a failed job; cancel: one that waits or runs. */
  action: "retry" | "cancel";
}

export interface ChangeJobResult {
  job_id: number;
  previous_state: JobState;
  receipt: Receipt;
}

/** Selects the memories to delete permanently: of a session, of a user, or all. */
export interface ClearParams {
  session_id?: string | null;
  user_id?: string | null;
  all?: boolean;
  /** Required with `all`. */
  confirm?: boolean;
}

export interface ClearResult {
  cleared_count: number;
  /** As for memory.delete. */
  reinstated_count?: number;
  /** False: the call reached its time limit; repeat it to continue. */
  complete?: boolean;
  receipt: Receipt;
}

/** The task that has ended. */
export interface CompleteTaskParams {
  task_id: string;
}

export interface CompleteTaskResult {
  success: boolean;
  /** Memories removed from working memory. */
  cleared_count: number;
  receipt: Receipt;
}

/** Rules to change for this agent; absent fields stay unchanged. */
export interface ConfigureParams {
  layers?: Partial<Record<MemoryType, LayerRules>> | null;
  /** Whether clusters of similar episodic memories are summarized. */
  consolidate?: boolean | null;
  /** Age in days at which sources of such summaries are archived; 0: never. */
  archive_sources_after_days?: number | null;
  /** Whether a language model extracts facts from new episodic memories in the background. */
  extract_facts?: boolean | null;
  /** Rules of session summaries; replaces all of them. Provider none: no summaries; default: the service's rules. */
  summaries?: SummaryRules | null;
}

export interface ConfigureResult {
  /** The rules in force for this agent. */
  layers: Partial<Record<MemoryType, LayerRules>>;
  /** The agent's own rules; the others are the service's. */
  own: Partial<Record<MemoryType, LayerRules>>;
  /** Names of the settings besides `layers` that were set for this agent by memory.configure. */
  own_settings?: string[];
  /** Whether episodic memories are consolidated in the background. */
  consolidate: boolean;
  /** Age in days at which summarized sources are archived; 0: never. */
  archive_sources_after_days: number;
  /** Whether a language model extracts facts from new memories. */
  extract_facts: boolean;
  /** Rules of session summaries in force; null: sessions end with extractive summaries. */
  summaries: SummaryRules | null;
  /** This agent's use of language models today. */
  llm_use: LlmUse;
  /** Settings with less effect than expected. */
  warnings: string[];
  receipt: Receipt;
  success: boolean;
}

/** Options of a consolidation: dry run, starting point, archiving of sources. */
export interface ConsolidateParams {
  /** Return the planned summaries; write none. */
  dry_run?: boolean;
  /** Process all episodic memories, not only new ones. */
  again?: boolean;
  /** Also archive old sources of current summaries. */
  archive_sources?: boolean;
  /** Minimum age of an archived source, from its timestamp. */
  archive_sources_after_days?: number;
}

export interface ConsolidateResult {
  success: boolean;
  dry_run: boolean;
  clusters: ConsolidatedCluster[];
  /** New episodic memories processed. */
  looked_at_count: number;
  /** Sources archived, or to archive in a dry run. */
  archived_count: number;
  /** False: the call reached a limit; call without `again` to continue. */
  complete: boolean;
  receipt: Receipt;
}

/** A cluster of similar memories, and its summary, existing or planned. */
export interface ConsolidatedCluster {
  /** Id of the summary; null in a dry run. */
  memory_id: string | null;
  /** Its sources, oldest first. */
  source_ids: string[];
  /** Sentences of the sources. */
  summary: string;
  /** The distinct facts of the sources. */
  facts: string[];
  /** The older summary that it supersedes. */
  replaces: string | null;
}

/** Filters of the memories to count. */
export interface CountParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  entities?: string[] | null;
  keywords?: string[] | null;
  tags?: string[] | null;
  min_importance?: number | null;
  /** Read from the primary, not from a replica, which may lag behind recent writes. */
  consistent?: boolean;
}

export interface CountResult {
  count: number;
  receipt: Receipt;
}

/** Selects the memories to delete: by ids, or by filters or `all` with `confirm`. */
export interface DeleteParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  entities?: string[] | null;
  keywords?: string[] | null;
  tags?: string[] | null;
  min_importance?: number | null;
  memory_ids?: string[] | null;
  /** Required with filters or `all`. */
  confirm?: boolean;
  /** Delete all memories of this agent; without ids and filters. */
  all?: boolean;
}

export interface DeleteResult {
  deleted_count: number;
  /** Superseded memories that are current again. */
  reinstated_count?: number;
  /** False: the call reached its time limit; `deleted_count` memories are deleted. Repeat the call to delete the rest. */
  complete?: boolean;
  receipt: Receipt;
}

/** Number of omitted memories, and the reason. */
export interface Dropped {
  reason: string;
  count: number;
}

/** The session that has ended, and whether to summarize it. */
export interface EndSessionParams {
  session_id: string;
  /** Store summaries of the messages not summarized yet, in the semantic layer, with links to their sources. */
  summarize?: boolean;
  /** Maximum of each summary, if the summary rules set none. */
  max_tokens?: number;
}

export interface EndSessionResult {
  success: boolean;
  session_id: string;
  /** Working memories moved to the episodic layer: current, and important or used. */
  promoted_count: number;
  /** Working memories that ended with the session, including superseded ones. Those remain readable if the memory that superseded them does. */
  ended_count: number;
  /** Id of the last summary; null without text to summarize, or if the summary is pending. */
  summary_id: string | null;
  /** Ids of the summaries made by this call, in order; a long session has several. Without a new one: the last existing summary. */
  summary_ids?: string[];
  /** Text of these summaries. */
  summary: string;
  /** A language model will summarize in the background; `summary` is not stored. */
  summary_pending?: boolean;
  receipt: Receipt;
}

/** Erases memories permanently, from every place: all of the agent's, or those of one user. */
export interface EraseParams {
  /** Erase the memories of this user and what was derived from them. */
  user_id?: string | null;
  /** Erase all data of the agent; instead of user_id. */
  all?: boolean;
  /** Required: erasing cannot be undone. */
  confirm?: boolean;
  /** `signed_receipt` of the previous incomplete call; the result and the receipt of this call include its counts. */
  continues?: string | null;
}

export interface EraseResult {
  /** Rows, objects, jobs and copies erased by this call and by those that it `continues`, by place. */
  erased: Record<string, number>;
  /** A final search of every place found no data, and every place was reachable. */
  verified: boolean;
  /** Data left, by place: written meanwhile, or not readable. */
  left?: Record<string, number>;
  /** Copies in archives that this server does not use, by archive id. They and their tombstones remain: erase again on a server that uses the archive. 'redis <id>': another Redis that may contain working memory until it expires. */
  unreachable?: Record<string, number>;
  /** False: the call reached its time limit; call again with `continues`. */
  complete?: boolean;
  /** The counts of all calls from `since` to `at`, signed by the service. */
  signed_receipt?: string | null;
  receipt: Receipt;
}

/** A value of a field, and the memories that have it. */
export interface FacetValue {
  value: string;
  count: number;
  /** Timestamp of the newest of them. */
  newest: string;
}

/** The fields whose values to count, and filters of the memories. */
export interface FacetsParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  entities?: string[] | null;
  keywords?: string[] | null;
  tags?: string[] | null;
  min_importance?: number | null;
  /** day: the date of the timestamp (UTC). */
  fields: ("memory_type" | "user_id" | "session_id" | "task_id" | "namespace" | "speaker" | "tags" | "day")[];
  /** Most frequent values of each. */
  limit?: number;
}

export interface FacetsResult {
  /** The most frequent values first. */
  facets: Partial<Record<"memory_type" | "user_id" | "session_id" | "task_id" | "namespace" | "speaker" | "tags" | "day", FacetValue[]>>;
  /** Memories counted: the newest 20,000 that match. */
  memory_count: number;
  /** False: more memories match than were counted. */
  complete: boolean;
  receipt: Receipt;
}

/** Rates a memory's usefulness: changes its relevance score. */
export interface FeedbackParams {
  memory_id: string;
  /** helpful: moves the score 10 % towards 1; unhelpful: 10 % towards 0; wrong: halves it. */
  verdict: "helpful" | "unhelpful" | "wrong";
  /** Reason; stored in the memory's history. */
  note?: string | null;
}

export interface FeedbackResult {
  success: boolean;
  memory_id: string;
  version: number;
  /** The new relevance score, 0 to 1. */
  relevance_score: number;
  receipt: Receipt;
}

/** The query of the context, its token budget, and filters of the memories to search. */
export interface GetContextParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  /** The task whose working memory is the first section. */
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  entities?: string[] | null;
  keywords?: string[] | null;
  tags?: string[] | null;
  min_importance?: number | null;
  query: string;
  max_tokens?: number;
  min_score?: number | null;
  /** As for memory.retrieve; the default is 0 with a `task_id`. */
  min_fit?: number | null;
  asked_at?: string | null;
  history?: Turn[];
  as_of?: string | null;
  query_vector?: number[] | null;
  /** As for memory.retrieve; does not apply to working memory. */
  distinct?: boolean;
  /** Include memories that match a pattern of injected instructions. */
  include_flagged?: boolean;
  /** Output format of the context. */
  format?: "markdown" | "text" | "json";
  /** Count tokens with this model's encoding. Rejected if the encoding is unknown. */
  model?: string | null;
  /** Count tokens with this tiktoken encoding, instead of `model`; absent: TOKEN_ENCODING. */
  encoding?: "cl100k_base" | "o200k_base" | null;
  /** Also return the memories found, with their score terms. */
  explain?: boolean;
}

export interface GetContextResult {
  context: string;
  token_count: number;
  /** The memories in the context, in the order of their numbers in it. */
  memory_ids: string[];
  /** The encoding used to count tokens; null if memory was not available. */
  encoding: string | null;
  /** Those of `memory_ids` that were shortened to some of their sentences. */
  shortened?: string[];
  /** Memories found but not in the context, best first; at most 50. */
  left_out?: LeftOut[];
  /** With `explain`: those of `memory_ids` that the search found, with their score terms. */
  memories?: MemorySummary[] | null;
  receipt: Receipt;
}

/** The memory to return. */
export interface GetParams {
  memory_id: string;
  /** Read from the primary, not from a replica, which may lag behind recent writes. */
  consistent?: boolean;
}

export interface GetResult {
  memory: MemoryRecord;
  receipt: Receipt;
}

/** One change: operation, resulting version, time, author and differences. */
export interface HistoryEntry {
  /** Sequence number of the change, from 1. */
  number: number;
  operation: string;
  /** The resulting version; null for changes by older versions of the service. */
  version?: number | null;
  changed_at: string;
  /** The `jti` of the caller's token. */
  token_id?: string | null;
  trace_id?: string | null;
  /** The previous values of the changed fields. */
  before?: Record<string, unknown> | null;
  /** The new values of these fields. `links`: those removed (before) or added (after). */
  after?: Record<string, unknown> | null;
}

/** The memory whose history to list, and the page size. */
export interface HistoryParams {
  memory_id: string;
  limit?: number;
  /** `next_cursor` of the previous page. */
  cursor?: number | null;
}

export interface HistoryResult {
  /** Latest first; empty if the memory never changed. */
  changes: HistoryEntry[];
  /** The memory's current version. */
  version: number;
  created_at: string;
  /** Who stored it: token, trace and form. */
  provenance: Record<string, unknown>;
  next_cursor: number | null;
  receipt: Receipt;
}

/** An exchange with an agent: the query, the response, the actions and their outcome. */
export interface Interaction {
  /** What the user said or asked. */
  query?: string | null;
  /** What the agent answered. */
  response?: string | null;
  /** Actions of the agent, texts or objects, in order. */
  actions?: unknown[];
  /** Result of the actions, a text or an object. */
  outcome?: unknown;
  interaction_id?: string | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | null;
  speaker?: string | null;
  /** When it was said or happened; now if absent. */
  timestamp?: string | null;
  metadata?: Record<string, unknown>;
}

/** A background job that waits, runs, failed or was cancelled. */
export interface JobEntry {
  job_id: number;
  /** The kind of work, such as `consolidate_episodes`. */
  name: string;
  state: JobState;
  /** What it works on, such as a session. */
  ids: Record<string, unknown>;
  /** Ended runs. */
  attempts: number;
  enqueued_at: string | null;
  /** When a scheduled job may start. */
  not_before: string | null;
  /** The class and message of the last failure. */
  failure: string | null;
}

/** Jobs that succeeded are deleted. */
export type JobState = "waiting" | "scheduled" | "running" | "failed" | "cancelled";

/** Which background jobs of the agent to list. */
export interface JobsParams {
  /** Default: all. */
  state?: JobState | null;
  limit?: number;
}

export interface JobsResult {
  /** Newest first. */
  jobs: JobEntry[];
  receipt: Receipt;
}

/** Forgetting rules of one layer. Null in `memory.configure`: reset to the service's default. */
export interface LayerRules {
  /** TTL of memories stored without one, in seconds; 0: they never expire. */
  ttl_seconds?: number | null;
  /** Number of memories above which the layer is pruned; 0: unlimited. */
  capacity?: number | null;
  /** Number of uses within its TTL after which a memory's TTL restarts; 0: never. No effect on memories without a TTL. */
  extend_after_uses?: number | null;
}

export interface LayerStats {
  count: number;
  /** Maximum number of memories; 0: unlimited. */
  capacity: number;
  oldest?: string | null;
  newest?: string | null;
  pinned?: number;
  waiting_for_embedding?: number;
}

/** A memory that is not in the context, and why. */
export interface LeftOut {
  memory_id: string;
  reason: "beyond_max_tokens" | "same_text" | "told_by_parent" | "told_by_sources" | "told_by_others";
}

/** A typed, weighted link from one memory to another of the same agent. */
export interface Link {
  target_id: string;
  relation?: string;
  weight?: number;
}

/** Filters, sort order and page size. */
export interface ListParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  entities?: string[] | null;
  keywords?: string[] | null;
  tags?: string[] | null;
  min_importance?: number | null;
  order_by?: "timestamp" | "importance" | "access_count";
  descending?: boolean;
  /** Also return vectors that callers passed. */
  vectors?: boolean;
  /** Read from the primary, not from a replica, which may lag behind recent writes. */
  consistent?: boolean;
  limit?: number;
  /** `next_cursor` of the previous page. */
  cursor?: string | null;
}

export interface ListResult {
  memories: MemoryRecord[];
  next_cursor: string | null;
  receipt: Receipt;
}

/** The agent's language model usage today (UTC). */
export interface LlmUse {
  /** Sent. */
  requests: number;
  /** Not sent: the budget was used up. Plain code did the work. */
  refused: number;
  /** Charged, or reserved by requests under way. */
  tokens: number;
  /** In the currency of the service's prices; 0 without prices. */
  cost: number;
  /** The budget; 0: unlimited. */
  tokens_a_day: number;
  /** The budget; 0: unlimited. */
  cost_a_day: number;
}

/** A link that was not restored: the other memory no longer exists. */
export interface LostLink {
  memory_id: string;
  other_id: string;
  relation: string;
}

/** A complete memory: content, derived fields, validity and usage. */
export interface MemoryRecord {
  memory_id: string;
  memory_type: MemoryType;
  content: string;
  summary: string;
  timestamp: string;
  interaction_id?: string | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | null;
  namespace?: string | null;
  speaker?: string | null;
  external_id?: string | null;
  actions?: unknown[];
  outcome?: unknown;
  action_outcomes?: ActionOutcome[];
  /** The assistant's text with reasoning blocks; only if stored with `keep_reasoning`. */
  response?: string | null;
  entities?: string[];
  facts?: string[];
  keywords?: string[];
  tags?: string[];
  metadata?: Record<string, unknown>;
  relevance_score?: number;
  pinned?: boolean;
  /** It matches a pattern of injected instructions. */
  flagged?: boolean;
  expires_at?: string | null;
  /** Start of the time that the text mentions; null if it mentions none. */
  event_from?: string | null;
  /** End of that time, exclusive. */
  event_to?: string | null;
  valid_from?: string | null;
  valid_to?: string | null;
  superseded_by?: string | null;
  parent_memory_id?: string | null;
  /** Linked in either direction. */
  related_memory_ids?: string[];
  /** Links from this memory to others. */
  links?: Link[];
  access_count?: number;
  last_accessed?: string | null;
  provenance?: Record<string, unknown>;
  embedding_model?: string | null;
  /** The vector passed by the caller; only from memory.list with `vectors`. */
  embedding?: number[] | null;
  content_hash?: string;
  version?: number;
  created_at: string;
  updated_at: string;
}

/** A memory as a search returns it. */
export interface MemorySummary {
  memory_id: string;
  memory_type: MemoryType;
  content: string;
  summary: string;
  timestamp: string;
  /** Ranking score, 0 to 1. */
  score?: number | null;
  /** Cosine similarity; null without a vector. */
  similarity?: number | null;
  relevance_score: number;
  speaker?: string | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | null;
  namespace?: string | null;
  external_id?: string | null;
  parent_memory_id?: string | null;
  entities?: string[];
  keywords?: string[];
  tags?: string[];
  metadata?: Record<string, unknown>;
  /** It matches a pattern of injected instructions. */
  flagged?: boolean;
  /** Search results omitted as near-duplicates of this memory. */
  stands_for?: string[];
  /** Search results omitted since this newer memory contradicts them. */
  instead_of?: string[];
  /** A newer search result, ranked above, that probably changes this memory. */
  outdated_by?: string | null;
  /** The better search result whose link raised or added this memory. */
  linked_to?: string | null;
  /** The memory that superseded this one; only from searches that include history. */
  superseded_by?: string | null;
  /** Start of validity, if superseded. */
  valid_from?: string | null;
  /** End of validity, if superseded. */
  valid_to?: string | null;
  /** The parts of the score; with `explain`. */
  terms?: Record<string, ScoreTerm> | null;
  /** The retrievers that found it, with `explain`: vector, lexical, links, temporal, neighbours. */
  retrievers?: string[] | null;
}

/** The outcome of one memory in a search. */
export interface MemoryTrace {
  memory_id: string;
  /** returned, or the step that removed it. nothing_fits: the query is about no stored memory. query_or_summary: it is the query itself, or a summary of a memory that was found. not_found: no retriever found it. unknown: there is no such memory. */
  outcome: "returned" | "beyond_k" | "far_below_the_best" | "nothing_fits" | "contradicted" | "same_text" | "below_min_score" | "query_or_summary" | "not_found" | "filtered" | "superseded" | "expired" | "unknown";
  /** The memory that supersedes it, contradicts it or has its text. */
  by?: string | null;
  /** The retrievers that found it. */
  retrievers?: string[];
  /** Cosine similarity to the query. */
  similarity?: number | null;
  /** Its rank among the candidates by similarity, from 1. */
  similarity_rank?: number | null;
  /** The lowest similarity of a candidate. */
  least_similarity?: number | null;
  /** Its BM25 score. */
  words?: number | null;
  /** Its rank among the candidates by BM25, from 1. */
  words_rank?: number | null;
  candidate_count?: number;
  /** Its rank by score without cut-offs, from 1. */
  rank?: number | null;
  score?: number | null;
  terms?: Record<string, ScoreTerm> | null;
}

/** The layer of a memory. */
export type MemoryType = "working" | "episodic" | "semantic" | "procedural";

/** One message of a conversation, also in the format of OpenAI's chat completions. */
export interface Message {
  /** The text of the message, or a list of OpenAI content parts, of which the texts are stored. A message with null or without text is skipped. */
  content: string | Record<string, unknown>[] | null;
  /** user, assistant, agent, system, tool ...; the speaker if `name` is absent. */
  role?: string;
  /** Name of the speaker. */
  name?: string | null;
  /** When it was said; now if absent. */
  timestamp?: string | null;
  /** The caller's own id; a message with a known id is not stored again. */
  message_id?: string | null;
  /** Default by role: assistant and agent 0.4, system and tool 0.3, others 0.5. */
  importance?: number | null;
  metadata?: Record<string, unknown>;
  /** Marks the message as the caller's own summary of the session up to this time. It is stored as a session summary in the semantic layer. */
  compacted_until?: string | null;
  /** Start of the summarized part, with `compacted_until`; absent: the session's start. */
  compacted_from?: string | null;
  /** Accepted for OpenAI's format; not stored. */
  tool_calls?: unknown;
  /** Accepted for OpenAI's format; not stored. */
  tool_call_id?: unknown;
  /** Accepted for OpenAI's format; not stored. */
  function_call?: unknown;
  /** Accepted for OpenAI's format; not stored. */
  refusal?: unknown;
  /** Accepted for OpenAI's format; not stored. */
  annotations?: unknown;
  /** Accepted for OpenAI's format; not stored. */
  audio?: unknown;
}

/** Filters of the memories to project. */
export interface ProjectParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  entities?: string[] | null;
  keywords?: string[] | null;
  tags?: string[] | null;
  min_importance?: number | null;
  /** The newest. */
  limit?: number;
}

/** Memories on two axes, newest first: each list has a value for each memory. */
export interface ProjectResult {
  memory_ids: string[];
  /** Place on the first axis, -1 to 1; both axes have the same scale. */
  x: number[];
  y: number[];
  timestamps: string[];
  /** Places in `values`, as those of users and sessions. */
  memory_types: number[];
  user_ids: number[];
  session_ids: number[];
  values: Partial<Record<"memory_types" | "user_ids" | "session_ids", (string | null)[]>>;
  /** Share of the variance along each axis. */
  explained: unknown[];
  /** Memories left out: they have no vector of the current model. */
  without_vectors: number;
  /** False: more memories match than `limit`. */
  complete: boolean;
  receipt: Receipt;
}

/** The layer to prune, the strategy, and how many memories. */
export interface PruneParams {
  /** working: pruned memories are archived and leave the working memory of their task. */
  memory_layer: MemoryType;
  /** Overridden by MEMORY_PRUNING_STRATEGY if absent and that is set. */
  strategy?: "least_relevant" | "oldest_first" | "frequency_based" | "retention_curve";
  /** How many to prune: an integer (500) is a count, a number with a decimal point (0.2, 1.0) a share of the layer. Absent: the excess over its capacity if there is one, else 0.2. */
  target?: number | null;
  /** Return the memories that would be pruned; prune none. */
  dry_run?: boolean;
}

export interface PruneResult {
  /** Memories pruned; 0 in a dry run. */
  pruned_count: number;
  /** The memories pruned, or to prune in a dry run. */
  memory_ids?: string[];
  dry_run?: boolean;
  /** False: the call reached its time limit. The memories in `memory_ids` are pruned, the others are not. Call again with the remaining count; a share would count the smaller layer. */
  complete?: boolean;
  receipt: Receipt;
}

/** What a call searched, found and dropped, and the duration of each step. */
export interface Receipt {
  /** What was searched and how. */
  searched?: Record<string, unknown>;
  /** Number of candidates by retriever. */
  candidates?: Record<string, number>;
  dropped?: Dropped[];
  /** Probability that the query is about stored memories, 0 to 1. */
  fit?: number | null;
  /** Unavailable components, and what the service did instead. */
  degraded?: string[];
  timings_ms?: Record<string, number>;
}

/** Selects the archived memories to restore: by ids, by filters, or `all`. */
export interface RestoreParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  tags?: string[] | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  /** Archived at or after this time. */
  archived_after?: string | null;
  /** Archived before this time. */
  archived_before?: string | null;
  memory_ids?: string[] | null;
  /** Restore all archived memories; without ids and filters. */
  all?: boolean;
  /** Maximum number by filters or `all`, most recently archived first. */
  limit?: number;
  /** `next_cursor` of the previous call, to continue after refused memories. Not with ids. */
  cursor?: string | null;
  /** Read and check the copies; restore none. */
  dry_run?: boolean;
}

export interface RestoreResult {
  /** Memories restored; 0 in a dry run. */
  restored_count: number;
  /** The memories restored, or to restore in a dry run. */
  memory_ids: string[];
  /** Links not restored, since the other memory no longer exists. Empty in a dry run. */
  lost_links?: LostLink[];
  /** Memories that expired in the archive. Their TTL is now what remained when they were archived, at least one day. */
  renewed_ids?: string[];
  /** Memories restored as superseded: a fact stored meanwhile replaced them or their source. Empty in a dry run. */
  superseded_ids?: string[];
  /** Matching memories that remain archived: facts and summaries whose source was deleted, and facts whose source has another text; at most 1,000. Requested by id, such a memory raises a conflict. */
  refused_ids?: string[];
  /** Matching memories that remain archived: their copy is missing, damaged, or in another archive; at most 1,000. If ids are passed and none of the copies is readable, the call fails with the error of the first. */
  unreadable_ids?: string[];
  /** Memories archived without a vector or with one of another model. They are found by words until the background job embeds them. Empty in a dry run. */
  waiting_for_embedding_ids?: string[];
  dry_run?: boolean;
  /** False: more memories match than `limit`, or the call reached its time limit. Call again, with `next_cursor` to continue after refused ones. */
  complete?: boolean;
  /** Cursor of the next call; null after the last match. */
  next_cursor?: string | null;
  receipt: Receipt;
}

/** The query, and filters of the memories to search. */
export interface RetrieveParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  entities?: string[] | null;
  keywords?: string[] | null;
  tags?: string[] | null;
  min_importance?: number | null;
  query: string;
  /** Maximum number of memories. */
  k?: number;
  /** Minimum cosine similarity of a memory. */
  min_score?: number | null;
  /** Minimum `fit`, the probability that the query is about stored memories; else none is returned. Absent: 0.2, or 0 with the embedding model hashing. Not applied to searches by words only. */
  min_fit?: number | null;
  /** The time that counts as now; the current time if absent. */
  asked_at?: string | null;
  /** Earlier turns of the conversation, oldest first; they complete a vague query. */
  history?: Turn[];
  /** Search the memories that were valid at this time. */
  as_of?: string | null;
  /** The caller's own vector, used instead of the embedder's. */
  query_vector?: number[] | null;
  /** Return only the newest of memories that are nearly equal or contradict each other. */
  distinct?: boolean;
  /** Return the terms of each score, and the retrievers of each memory. */
  explain?: boolean;
  /** Weights of ranking terms for this search only, as an experiment. Requires the scope memory:admin. */
  weights?: Partial<Record<"similarity" | "words" | "session" | "neighbours" | "speaker" | "time" | "recency" | "frequency" | "importance" | "links", number>>;
  /** Ids of memories: report the outcome of each in this search. */
  trace?: string[];
}

export interface RetrieveResult {
  memories: MemorySummary[];
  /** With `trace`: in the order of its ids. */
  traces?: MemoryTrace[] | null;
  receipt: Receipt;
}

/** The memory to revert, and the version to revert to. */
export interface RevertParams {
  memory_id: string;
  /** Restore the fields of this version. */
  version: number;
  /** Fail with a conflict if the memory has another version. */
  if_version?: number | null;
}

export interface RevertResult {
  success: boolean;
  memory_id: string;
  /** The resulting version; a revert is a new change. */
  version: number;
  receipt: Receipt;
}

/** One term of a score: `contribution` = `weight` x `value`. For `reranker`, `value` is its relevance, and `contribution` the change of the score by the new order. */
export interface ScoreTerm {
  value: number;
  weight: number;
  contribution: number;
}

/** No params. */
export interface SettingsParams {
}

export interface SettingsResult {
  /** The rules in force for this agent. */
  layers: Partial<Record<MemoryType, LayerRules>>;
  /** The agent's own rules; the others are the service's. */
  own: Partial<Record<MemoryType, LayerRules>>;
  /** Names of the settings besides `layers` that were set for this agent by memory.configure. */
  own_settings?: string[];
  /** Whether episodic memories are consolidated in the background. */
  consolidate: boolean;
  /** Age in days at which summarized sources are archived; 0: never. */
  archive_sources_after_days: number;
  /** Whether a language model extracts facts from new memories. */
  extract_facts: boolean;
  /** Rules of session summaries in force; null: sessions end with extractive summaries. */
  summaries: SummaryRules | null;
  /** This agent's use of language models today. */
  llm_use: LlmUse;
  /** Settings with less effect than expected. */
  warnings: string[];
  receipt: Receipt;
}

/** No params. */
export interface StatsParams {
}

export interface StatsResult {
  total: number;
  layers: Partial<Record<MemoryType, LayerStats>>;
  links: number;
  archived: number;
  accesses: number;
  receipt: Receipt;
}

/** Several stores in one transaction; an item that cannot be stored is rejected alone. */
export interface StoreBatchParams {
  items: StoreParams[];
}

export interface StoreBatchResult {
  /** False if an item was rejected. */
  success: boolean;
  /** One result for each item, in order. */
  results: StoreResult[];
  receipt: Receipt;
}

/** The memory to store: an `interaction`, or `content` as text. */
export interface StoreParams {
  interaction?: Interaction | null;
  content?: string | null;
  /** The layer; episodic if absent. */
  memory_type?: MemoryType | null;
  /** Importance of the memory, 0 to 1; 0.5 if absent. */
  importance?: number | null;
  tags?: string[];
  namespace?: string | null;
  user_id?: string | null;
  session_id?: string | null;
  task_id?: string | null;
  speaker?: string | null;
  /** When it was said or happened; now if absent. Rejected if more than 24 hours ahead. */
  timestamp?: string | null;
  /** Seconds until it expires; null: never. Absent: the default of its layer. */
  ttl_seconds?: number | null;
  /** Never pruned, never expired. */
  pinned?: boolean;
  /** The caller's own id; returned unchanged. */
  external_id?: string | null;
  /** A repeated key returns the first memory_id and stores nothing. */
  idempotency_key?: string | null;
  /** The caller's own vector, used instead of the embedder's. */
  embedding?: number[] | null;
  parent_memory_id?: string | null;
  /** Start of validity; the timestamp if absent. */
  valid_from?: string | null;
  /** End of validity; still valid if absent. */
  valid_to?: string | null;
  /** The memory that replaced it. */
  superseded_by?: string | null;
  links?: Link[];
  /** Store it even if it has no content worth storing or is a duplicate. */
  force?: boolean;
  /** Supersede memories whose fact this one changes. */
  supersede?: boolean;
  /** Keep an assistant's text with its reasoning blocks in the record's `response`. */
  keep_reasoning?: boolean;
  metadata?: Record<string, unknown>;
}

export interface StoreResult {
  success: boolean;
  memory_id: string | null;
  status: "stored" | "existing" | "reinforced" | "rejected";
  /** The memories that it superseded. */
  superseded?: string[];
  /** Set if a memory with a later timestamp, stored earlier, supersedes this one. */
  superseded_by?: string | null;
  /** An earlier memory with nearly the same text. */
  near_duplicate_of?: string | null;
  /** Why it was rejected. */
  reason?: string | null;
  /** It matches a pattern of injected instructions. */
  flagged?: boolean;
  /** The names of the patterns it matches. */
  flags?: string[];
  /** In a batch, the error code that memory.store would return for this item; null if it was rejected for its content only. */
  code?: number | null;
  /** Null in a batch, which has one receipt. */
  receipt?: Receipt | null;
}

/** Filters of the memories to summarize, and the token limit. */
export interface SummarizeParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | (string | null)[] | null;
  namespace?: string | null;
  /** Timestamp at or after this time. */
  after?: string | null;
  /** Timestamp before this time. */
  before?: string | null;
  entities?: string[] | null;
  keywords?: string[] | null;
  tags?: string[] | null;
  min_importance?: number | null;
  max_tokens?: number;
}

export interface SummarizeResult {
  /** Sentences of the memories, in chronological order. */
  summary: string;
  token_count: number;
  /** The memories quoted in it. */
  memory_ids: string[];
  /** Memories read: the newest 1,000, and the summaries of older ones. */
  memory_count: number;
  receipt: Receipt;
}

/** How and when segments of a session are summarized. The end of a session always triggers a summary. */
export interface SummaryRules {
  /** extractive: uses the caller's compaction summaries and selects sentences from the remaining messages. llm: a language model writes all summaries. compaction_aware (the default if `trigger` is `compaction`): uses the compaction summaries; a language model summarizes the rest. passthrough: uses the compaction summaries and copies the rest verbatim. none: no segment summaries; the session is summarized at its end. default: use the service's rules. */
  provider?: "none" | "default" | "extractive" | "llm" | "compaction_aware" | "passthrough";
  trigger?: "user_turns" | "message_count" | "inactivity" | "compaction" | "session_end";
  /** Number of user turns, for the trigger `user_turns`. */
  user_turns?: number;
  /** Number of messages, for the trigger `message_count`. */
  message_count?: number;
  /** Seconds without a new message, for the trigger `inactivity`. */
  inactivity_seconds?: number;
  /** Also summarize all session summaries of one user and namespace in each day, ISO week or month (UTC), if there are at least two. null: do not. */
  period?: "day" | "week" | "month" | null;
  /** Maximum tokens of one summary; a long segment gets several. */
  max_tokens?: number;
  /** Additional instructions for the language model, appended to the service's prompt. */
  prompt?: string | null;
}

/** One earlier turn of the query's conversation. */
export interface Turn {
  role?: string;
  content: string;
}

/** The memory to update, and its changes. */
export interface UpdateParams {
  memory_id: string;
  updates: Updates;
}

export interface UpdateResult {
  success: boolean;
  memory_id: string;
  version: number;
  receipt: Receipt;
}

/** Fields to change; absent fields stay unchanged, and only ttl_seconds may be null. */
export interface Updates {
  /** The corrected text; summary and vector are derived from it. */
  content?: string | null;
  /** New information, appended to the content. */
  context?: string | null;
  relevance_score?: number | null;
  /** Alias of relevance_score. */
  importance?: number | null;
  tags?: string[] | null;
  /** Merged into the metadata; null removes a key. */
  metadata?: Record<string, unknown> | null;
  pinned?: boolean | null;
  /** Seconds from now until it expires; null: never. */
  ttl_seconds?: number | null;
  /** Links to add. */
  links?: Link[];
  /** Targets of the links to remove. */
  unlink?: string[];
  /** Make a superseded memory current again. */
  current?: true | null;
  /** Restart its TTL, if at least a twentieth of it has passed. Not with other fields; version and history do not change. */
  renew?: true | null;
  /** Fail with a conflict if the memory has another version. */
  if_version?: number | null;
}

/** What went wrong; `retryable` says whether the same request may succeed later. */
export declare class MemoryError extends Error {
  static readonly code: number;
  static readonly retryable: boolean;
  readonly code: number;
  readonly retryable: boolean;
  readonly data: Record<string, unknown>;
  constructor(message?: string, data?: Record<string, unknown>, options?: ErrorOptions);
}

/** Parse error. */
export declare class ParseError extends MemoryError {
  static readonly code: -32700;
  readonly code: -32700;
}

/** Invalid Request. */
export declare class InvalidRequest extends MemoryError {
  static readonly code: -32600;
  readonly code: -32600;
}

/** Method not found. */
export declare class MethodNotFound extends MemoryError {
  static readonly code: -32601;
  readonly code: -32601;
}

/** Invalid params. */
export declare class InvalidParams extends MemoryError {
  static readonly code: -32602;
  readonly code: -32602;
}

/** Internal error. */
export declare class InternalError extends MemoryError {
  static readonly code: -32603;
  readonly code: -32603;
}

/** No such memory. */
export declare class NotFound extends MemoryError {
  static readonly code: -32001;
  readonly code: -32001;
}

/** The request contradicts what is already stored. */
export declare class Conflict extends MemoryError {
  static readonly code: -32002;
  readonly code: -32002;
}

/** The request is larger than the service accepts. */
export declare class TooLarge extends MemoryError {
  static readonly code: -32003;
  readonly code: -32003;
}

/** Too many requests, or overload; `data.retry_after_seconds` says how long to wait. */
export declare class RateLimited extends MemoryError {
  static readonly code: -32004;
  readonly code: -32004;
}

/** A part the service depends on does not answer. */
export declare class DependencyUnavailable extends MemoryError {
  static readonly code: -32005;
  readonly code: -32005;
}

/** A part the service depends on cannot be reached. */
export declare class Unreachable extends DependencyUnavailable {
  static readonly code: -32005;
  readonly code: -32005;
}

/** Every database connection is in use; none became free in time. */
export declare class PoolExhausted extends DependencyUnavailable {
  static readonly code: -32005;
  readonly code: -32005;
}

/** A deadlock or a concurrent change ended this transaction; nothing of it was kept. */
export declare class TransactionConflict extends DependencyUnavailable {
  static readonly code: -32005;
  readonly code: -32005;
}

/** PostgreSQL took too long for this call. */
export declare class StatementTimeout extends DependencyUnavailable {
  static readonly code: -32005;
  readonly code: -32005;
}

/** A disk of the service is full: free space, or make it larger. */
export declare class DiskFull extends DependencyUnavailable {
  static readonly code: -32005;
  readonly code: -32005;
}

/** A limit in PostgreSQL's configuration was reached, usually temp_file_limit: raise it. */
export declare class ServerLimit extends DependencyUnavailable {
  static readonly code: -32005;
  readonly code: -32005;
}

/** PostgreSQL accepts no changes: this server is a standby. Set DATABASE_URL to the primary. */
export declare class ReadOnlyDatabase extends DependencyUnavailable {
  static readonly code: -32005;
  readonly code: -32005;
}

/** The service is starting or stopping. */
export declare class NotReady extends MemoryError {
  static readonly code: -32006;
  readonly code: -32006;
}

/** Authentication failed. */
export declare class AuthenticationFailed extends MemoryError {
  static readonly code: -32103;
  readonly code: -32103;
}

/** The token lacks the scope this method needs. */
export declare class NotAuthorised extends MemoryError {
  static readonly code: -32104;
  readonly code: -32104;
}

/** One agent's memory, over HTTP. */
export declare class MemoryClient {
  constructor(url: string, token: TokenSource, options?: ClientOptions);
  readonly url: string;
  /** Store an interaction; `options` are the other params of store. */
  addInteraction(interaction: Interaction, options?: Omit<StoreParams, "interaction">,
    call?: CallOptions): Promise<StoreResult>;
  /** The best memories for a query, best first; `options` are the other params of retrieve. */
  retrieveMemories(query: string, options?: Omit<RetrieveParams, "query">,
    call?: CallOptions): Promise<MemorySummary[]>;
  /** A prompt-ready context; `options` are the other params of getContext. */
  getRelevantContext(query: string, options?: Omit<GetContextParams, "query">,
    call?: CallOptions): Promise<string>;
  /** Store an interaction, or a plain content, as one memory. */
  store(params?: StoreParams, call?: CallOptions): Promise<StoreResult>;
  /** Store up to 1,000 memories in one transaction, with a result for each; invalid ones are rejected, the others stored. */
  storeBatch(params: StoreBatchParams, call?: CallOptions): Promise<StoreBatchResult>;
  /** Find the memories that matter for a query, best first. */
  retrieve(params: RetrieveParams, call?: CallOptions): Promise<RetrieveResult>;
  /** Build a prompt-ready context for a query inside a token budget. */
  getContext(params: GetContextParams, call?: CallOptions): Promise<GetContextResult>;
  /** Correct, extend or re-weigh a memory; the change is kept in its history. */
  update(params: UpdateParams, call?: CallOptions): Promise<UpdateResult>;
  /** What was changed in a memory, when and by whom, the latest first. */
  history(params: HistoryParams, call?: CallOptions): Promise<HistoryResult>;
  /** Bring a memory back to how it stood at an earlier version; nothing of its history goes. */
  revert(params: RevertParams, call?: CallOptions): Promise<RevertResult>;
  /** Say how a memory served: helpful, unhelpful or wrong moves its relevance score. */
  feedback(params: FeedbackParams, call?: CallOptions): Promise<FeedbackResult>;
  /** Archive and remove memories of a layer by a strategy. */
  prune(params: PruneParams, call?: CallOptions): Promise<PruneResult>;
  /** Bring archived memories back as they were, with vector, history, links and use. */
  restore(params?: RestoreParams, call?: CallOptions): Promise<RestoreResult>;
  /** Archived memories page by page, those archived last first. */
  archived(params?: ArchivedParams, call?: CallOptions): Promise<ArchivedResult>;
  /** One memory, whole, by its id. */
  get(params: GetParams, call?: CallOptions): Promise<GetResult>;
  /** Memories page by page, by time, importance or access count. */
  list(params?: ListParams, call?: CallOptions): Promise<ListResult>;
  /** How many memories match. */
  count(params?: CountParams, call?: CallOptions): Promise<CountResult>;
  /** Count the values of users, sessions, tags and other fields. */
  facets(params: FacetsParams, call?: CallOptions): Promise<FacetsResult>;
  /** Project the vectors of memories onto two axes, for a map. */
  project(params?: ProjectParams, call?: CallOptions): Promise<ProjectResult>;
  /** Delete memories by id, or by a filter with confirm; says how many went. */
  delete(params?: DeleteParams, call?: CallOptions): Promise<DeleteResult>;
  /** Counts by layer, links, archived memories and accesses. */
  stats(params?: StatsParams, call?: CallOptions): Promise<StatsResult>;
  /** What this service can do, and its limits. */
  capabilities(params?: CapabilitiesParams, call?: CallOptions): Promise<CapabilitiesResult>;
  /** End a task: its working memory is cleared, its lasting memories stay. */
  completeTask(params: CompleteTaskParams, call?: CallOptions): Promise<CompleteTaskResult>;
  /** Store a conversation, or more of one: a memory for each message. */
  addSession(params: AddSessionParams, call?: CallOptions): Promise<AddSessionResult>;
  /** End a session: its working memory is promoted or ends, summaries of what was said are kept. */
  endSession(params: EndSessionParams, call?: CallOptions): Promise<EndSessionResult>;
  /** A summary of the memories that match, in their own sentences: no model is asked. It is not kept. */
  summarize(params?: SummarizeParams, call?: CallOptions): Promise<SummarizeResult>;
  /** Delete a session, a user's memories or all; says how many went. */
  clear(params?: ClearParams, call?: CallOptions): Promise<ClearResult>;
  /** The agent's rules: how its layers forget, whether its episodes are consolidated. */
  settings(params?: SettingsParams, call?: CallOptions): Promise<SettingsResult>;
  /** Give an agent rules of its own: how its layers forget, whether episodes are consolidated. */
  configure(params?: ConfigureParams, call?: CallOptions): Promise<ConfigureResult>;
  /** Give episodic memories that tell one thing together a summary that points to them. */
  consolidate(params?: ConsolidateParams, call?: CallOptions): Promise<ConsolidateResult>;
  /** List the agent's background jobs, newest first; those that succeeded are deleted. */
  jobs(params?: JobsParams, call?: CallOptions): Promise<JobsResult>;
  /** Retry a failed background job of the agent, or cancel one that waits or runs. */
  changeJob(params: ChangeJobParams, call?: CallOptions): Promise<ChangeJobResult>;
  /** Erase all of the agent, or of a user within it, from every place; with a signed receipt. */
  erase(params?: EraseParams, call?: CallOptions): Promise<EraseResult>;
}
