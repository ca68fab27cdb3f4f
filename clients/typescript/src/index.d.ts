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
  /** Seconds until they expire; null: never. Absent: as the episodic layer has it. */
  ttl_seconds?: number | null;
  /** As for memory.store, of each message. */
  keep_reasoning?: boolean;
  /** Store greetings and the like, too, and the same words again. */
  force?: boolean;
}

export interface AddSessionResult {
  /** False where a message could not be stored; one merely not worth storing is passed over. */
  success: boolean;
  session_id: string;
  stored_count: number;
  /** One for each message, in order. */
  results: StoreResult[];
  receipt: Receipt;
}

/** One archived memory: the index entry, without its archived copy. */
export interface ArchivedMemory {
  memory_id: string;
  memory_type: MemoryType;
  version: number;
  /** Null where an older version archived it. */
  timestamp?: string | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | null;
  namespace?: string | null;
  tags?: string[];
  object_key: string;
  /** Of the compressed copy before it is sealed, in hexadecimal digits. */
  sha256: string;
  /** Of the compressed copy. */
  size_bytes: number;
  /** The strategy that took it. */
  reason: string;
  archived_at: string;
  /** The archive that contains the copy; null where an older version archived it. */
  archive_id?: string | null;
  /** True: the copy is not in this server's archive, so it can neither restore nor erase it. Null: not known, or the archive does not answer. */
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
  /** `next_cursor` of the page before. */
  cursor?: string | null;
}

export interface ArchivedResult {
  /** Those archived last come first. */
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
  /** What this service does, by name. Where it has a language model: model_facts (it reads memories for facts), model_summaries (of sessions and clusters), model_judge (of replaced facts). */
  features: string[];
  receipt: Receipt;
}

/** Selects the memories to delete permanently: of a session, of a user, or all. */
export interface ClearParams {
  session_id?: string | null;
  user_id?: string | null;
  all?: boolean;
  /** Needed beside `all`. */
  confirm?: boolean;
}

export interface ClearResult {
  cleared_count: number;
  /** As in a delete's result. */
  reinstated_count?: number;
  /** False: the call's time ran out; the same call goes on. */
  complete?: boolean;
  receipt: Receipt;
}

/** The task that has ended. */
export interface CompleteTaskParams {
  task_id: string;
}

export interface CompleteTaskResult {
  success: boolean;
  /** Memories that left working memory. */
  cleared_count: number;
  receipt: Receipt;
}

/** Rules to change for this agent; absent fields stay unchanged. */
export interface ConfigureParams {
  layers?: Partial<Record<MemoryType, LayerRules>> | null;
  /** Whether episodic memories that tell one thing get a summary, in the background. */
  consolidate?: boolean | null;
  /** Sources so old go to the archive then, their summary stays; 0: never. */
  archive_sources_after_days?: number | null;
  /** Whether a model reads new episodic memories for facts, in the background. */
  extract_facts?: boolean | null;
  /** How stretches of sessions are summarised, all of it; provider none: in none; default: as the service has it. */
  summaries?: SummaryRules | null;
}

export interface ConfigureResult {
  /** What holds for this agent. */
  layers: Partial<Record<MemoryType, LayerRules>>;
  /** What of it is set for this agent alone; the rest is the service's. */
  own: Partial<Record<MemoryType, LayerRules>>;
  /** Whether episodes are consolidated in the background. */
  consolidate: boolean;
  /** How old sources go to the archive once they have a summary; 0: never. */
  archive_sources_after_days: number;
  /** Whether new episodic memories are read for facts by a model. */
  extract_facts: boolean;
  /** How stretches of sessions are summarised, by the agent's rules or the service's; null: their ends keep what was said, by extraction. */
  summaries: SummaryRules | null;
  /** What language models cost this agent today. */
  llm_use: LlmUse;
  /** What of these settings works less well than it may seem. */
  warnings: string[];
  receipt: Receipt;
  success: boolean;
}

/** Options of a consolidation: dry run, starting point, archiving of sources. */
export interface ConsolidateParams {
  /** List what it would make; nothing is written. */
  dry_run?: boolean;
  /** Look at every episodic memory again, not only at new ones. */
  again?: boolean;
  /** Then archive the sources of standing summaries that are old enough. */
  archive_sources?: boolean;
  /** How old a source must be for that, counted from its time. */
  archive_sources_after_days?: number;
}

export interface ConsolidateResult {
  success: boolean;
  dry_run: boolean;
  clusters: ConsolidatedCluster[];
  /** New episodic memories that were looked at. */
  looked_at_count: number;
  /** Sources that went to the archive; of a dry run, that would. */
  archived_count: number;
  /** False: time or number ran out; a call without `again` goes on. */
  complete: boolean;
  receipt: Receipt;
}

/** A cluster of similar memories, and its summary, existing or planned. */
export interface ConsolidatedCluster {
  /** The summary's memory; null in a dry run. */
  memory_id: string | null;
  /** What it is of, the oldest first. */
  source_ids: string[];
  /** Sentences of the sources themselves. */
  summary: string;
  /** The sources' facts, each once. */
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
  /** Read past a replica that lags, what was changed just now: for what then decides a write. */
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
  /** Needed beside a filter or `all`. */
  confirm?: boolean;
  /** Everything this agent has; instead of ids and filters. */
  all?: boolean;
}

export interface DeleteResult {
  deleted_count: number;
  /** Superseded memories that hold again: what had taken their place is among the deleted. */
  reinstated_count?: number;
  /** False: the call's time ran out between two chunks. What was counted is gone; the same call again goes on with the rest, however many there are. */
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
  /** Keep summaries of what was said and no summary tells of, in the semantic layer, tied to what they are of. */
  summarize?: boolean;
  /** Of each summary, where no rules say how many. */
  max_tokens?: number;
}

export interface EndSessionResult {
  success: boolean;
  session_id: string;
  /** Working memories that became episodic: they hold, and are important or used. */
  promoted_count: number;
  /** Working memories that ended with the session, superseded ones among them: those stay readable where what took their place lasts. */
  ended_count: number;
  /** The last summary's memory; null where there was nothing to say, or a model is to say it. */
  summary_id: string | null;
  /** The summaries' memories in order: a long session gives several. Those made now; where nothing was to be told, the last there is. */
  summary_ids?: string[];
  /** What they say. */
  summary: string;
  /** A model's summary is still to come; `summary` is plain code's, and not kept. */
  summary_pending?: boolean;
  receipt: Receipt;
}

/** Erases memories permanently, from every place: all of the agent's, or those of one user. */
export interface EraseParams {
  /** This user's memories, and what was made of them. */
  user_id?: string | null;
  /** Everything that the agent has; instead of user_id. */
  all?: boolean;
  /** Needed: nothing brings it back. */
  confirm?: boolean;
  /** `signed_receipt` of the call before, where that was not complete: this call's `erased` and receipt include what it erased. */
  continues?: string | null;
}

export interface EraseResult {
  /** How much was erased by this call, and by those that it `continues`, by place: rows of tables, objects, jobs, copies. */
  erased: Record<string, number>;
  /** Afterwards every place was searched, and nothing was left or out of reach. */
  verified: boolean;
  /** What was left, by place: written meanwhile, or not to be read. */
  left?: Record<string, number>;
  /** Copies in archives that this server does not use, by the archive's id; 'unknown' where none is recorded. They and their tombstones stay: erase again on a server that uses the archive. 'redis <id>': another Redis, which may contain working memory of any agent; it expires. */
  unreachable?: Record<string, number>;
  /** False: the call's time ran out; call again, with `continues`, to go on. */
  complete?: boolean;
  /** What was erased from `since` to `at`, signed by the service. */
  signed_receipt?: string | null;
  receipt: Receipt;
}

/** Rates a memory's usefulness: changes its relevance score. */
export interface FeedbackParams {
  memory_id: string;
  /** helpful: a tenth of the way to 1; unhelpful: a tenth of the way to 0; wrong: half of it. */
  verdict: "helpful" | "unhelpful" | "wrong";
  /** Why; kept in the memory's history. */
  note?: string | null;
}

export interface FeedbackResult {
  success: boolean;
  memory_id: string;
  version: number;
  /** After the verdict, 0 to 1. */
  relevance_score: number;
  receipt: Receipt;
}

/** The query of the context, its token budget, and filters of the memories to search. */
export interface GetContextParams {
  /** Only these layers. */
  memory_types?: MemoryType[] | null;
  /** The task whose working memory comes first. */
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
  /** As for memory.retrieve. */
  min_fit?: number | null;
  asked_at?: string | null;
  history?: Turn[];
  as_of?: string | null;
  query_vector?: number[] | null;
  /** As for memory.retrieve; working memory stays as it is. */
  distinct?: boolean;
  /** Include memories that match a pattern of injected instructions. */
  include_flagged?: boolean;
  /** How the context is written. */
  format?: "markdown" | "text" | "json";
  /** The model whose tokens are counted; one whose encoding is not here is refused. */
  model?: string | null;
  /** The tiktoken encoding to count in, instead of `model`; absent: TOKEN_ENCODING. */
  encoding?: "cl100k_base" | "o200k_base" | null;
  /** Give back what was found with its score terms, too. */
  explain?: boolean;
}

export interface GetContextResult {
  context: string;
  token_count: number;
  /** The memories in the context, in its order: the first is the one numbered 1 in it. */
  memory_ids: string[];
  /** The encoding that the tokens were counted in; null where memory was not asked. */
  encoding: string | null;
  /** Those of them that stand there in some of their sentences alone. */
  shortened?: string[];
  /** What was found and left out, the best first; at most 50. */
  left_out?: LeftOut[];
  /** With `explain`: those of them that the search found, with their score terms. */
  memories?: MemorySummary[] | null;
  receipt: Receipt;
}

/** The memory to return. */
export interface GetParams {
  memory_id: string;
  /** Read past a replica that lags, what was changed just now: for what then decides a write. */
  consistent?: boolean;
}

export interface GetResult {
  memory: MemoryRecord;
  receipt: Receipt;
}

/** One change: operation, resulting version, time, author and differences. */
export interface HistoryEntry {
  /** Its place among the memory's changes, from 1. */
  number: number;
  operation: string;
  /** The version it made; null for changes of older services. */
  version?: number | null;
  changed_at: string;
  /** The `jti` of the token that was used. */
  token_id?: string | null;
  trace_id?: string | null;
  /** The fields that changed, as they were. */
  before?: Record<string, unknown> | null;
  /** The same fields as they became; `links`: ties that went (before) or came (after). */
  after?: Record<string, unknown> | null;
}

/** The memory whose history to list, and the page size. */
export interface HistoryParams {
  memory_id: string;
  limit?: number;
  /** `next_cursor` of the page before. */
  cursor?: number | null;
}

export interface HistoryResult {
  /** The latest first; empty where nothing was changed. */
  changes: HistoryEntry[];
  /** The version the memory stands at. */
  version: number;
  created_at: string;
  /** Who stored it, and on which trace. */
  provenance: Record<string, unknown>;
  next_cursor: number | null;
  receipt: Receipt;
}

/** An exchange with an agent: the query, the response, the actions and their outcome. */
export interface Interaction {
  /** What was asked or said to the agent. */
  query?: string | null;
  /** What the agent answered. */
  response?: string | null;
  /** What was done: texts or objects, in order. */
  actions?: unknown[];
  /** How it ended: a text or an object. */
  outcome?: unknown;
  interaction_id?: string | null;
  task_id?: string | null;
  session_id?: string | null;
  user_id?: string | null;
  speaker?: string | null;
  /** When it happened; now if absent. */
  timestamp?: string | null;
  metadata?: Record<string, unknown>;
}

/** Forgetting rules of one layer. Null in `memory.configure`: reset to the service's default. */
export interface LayerRules {
  /** Seconds a memory lives that is stored without a time to live; 0: for ever. */
  ttl_seconds?: number | null;
  /** Memories the layer holds before it is pruned; 0: unlimited. */
  capacity?: number | null;
  /** Used so often within its life, a memory gets its time to live again; 0: never. No effect on a memory stored without a time to live. */
  extend_after_uses?: number | null;
}

export interface LayerStats {
  count: number;
  /** 0 means unlimited. */
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
  /** Give the vectors that callers gave, too. */
  vectors?: boolean;
  /** Read past a replica that lags, what was changed just now: for what then decides a write. */
  consistent?: boolean;
  limit?: number;
  /** `next_cursor` of the page before. */
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
  /** What the assistant said, with reasoning blocks; only with `keep_reasoning`. */
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
  /** Where the time its words speak of begins; null where they name none. */
  event_from?: string | null;
  /** Where that time ends, not included. */
  event_to?: string | null;
  valid_from?: string | null;
  valid_to?: string | null;
  superseded_by?: string | null;
  parent_memory_id?: string | null;
  /** Tied to it, either way. */
  related_memory_ids?: string[];
  /** Its own ties to others. */
  links?: Link[];
  access_count?: number;
  last_accessed?: string | null;
  provenance?: Record<string, unknown>;
  embedding_model?: string | null;
  /** The vector its caller gave, where memory.list was asked for `vectors`; else null. */
  embedding?: number[] | null;
  content_hash?: string;
  version?: number;
  created_at: string;
  updated_at: string;
}

/** A memory as a search returns it; with `explain`, `terms` breaks down its score. */
export interface MemorySummary {
  memory_id: string;
  memory_type: MemoryType;
  content: string;
  summary: string;
  timestamp: string;
  /** The fused ranking value, 0 to 1. */
  score?: number | null;
  /** The cosine alone; null without a vector. */
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
  /** Of a search: what was left out because this one says the same in nearly the same words. */
  stands_for?: string[];
  /** Of a search: what was left out because this one, which is newer, contradicts it. */
  instead_of?: string[];
  /** Of a search: a newer memory, ranked above it, that probably changes it. */
  outdated_by?: string | null;
  /** Of a search: the better match whose link moved this memory up or brought it in. */
  linked_to?: string | null;
  /** Of a search that looked at history, too: the memory that took this one's place. */
  superseded_by?: string | null;
  /** Where it is superseded: from when it held. */
  valid_from?: string | null;
  /** Where it is superseded: until when it held. */
  valid_to?: string | null;
  terms?: Record<string, ScoreTerm> | null;
}

/** The layer of a memory. */
export type MemoryType = "working" | "episodic" | "semantic" | "procedural";

/** One message of a conversation, also in the format of OpenAI's chat completions. */
export interface Message {
  /** What was said: a text, or OpenAI's parts, of which the texts are kept. With null, or without a text, the message is passed over. */
  content: string | Record<string, unknown>[] | null;
  /** user, assistant, agent, system, tool ...: the speaker, unless `name` says who. */
  role?: string;
  /** Who speaks. */
  name?: string | null;
  /** When it was said; now if absent. */
  timestamp?: string | null;
  /** The caller's own id: added again, the message is not stored twice. */
  message_id?: string | null;
  /** Absent: by role: assistant and agent 0.4, system and tool 0.3, others 0.5. */
  importance?: number | null;
  metadata?: Record<string, unknown>;
  /** The message is your own summary of what was said up to then: it is kept as a summary of the session, in the semantic layer. */
  compacted_until?: string | null;
  /** Where that begins; absent: with the session. Only with `compacted_until`. */
  compacted_from?: string | null;
  /** As OpenAI's messages have it: taken, and not kept. */
  tool_calls?: unknown;
  /** The same. */
  tool_call_id?: unknown;
  /** The same. */
  function_call?: unknown;
  /** The same. */
  refusal?: unknown;
  /** The same. */
  annotations?: unknown;
  /** The same. */
  audio?: unknown;
}

/** The layer to prune, the strategy, and how many memories. */
export interface PruneParams {
  /** working: what is pruned is archived and leaves its task's window, as in any other layer. */
  memory_layer: MemoryType;
  /** Absent: MEMORY_PRUNING_STRATEGY of the service, if that is set. */
  strategy?: "least_relevant" | "oldest_first" | "frequency_based" | "retention_curve";
  /** How many: a whole number (500) is a count, a number with a point (0.2, 1.0) a share of the layer, 1.0 all of it. Absent: down to capacity where exceeded, else the lowest 20 %. */
  target?: number | null;
  /** Name what would go, and take nothing. */
  dry_run?: boolean;
}

export interface PruneResult {
  /** How many went; 0 in a dry run. */
  pruned_count: number;
  /** What went, or would go in a dry run. */
  memory_ids?: string[];
  dry_run?: boolean;
  /** False: the call's time ran out between two chunks; what is named is archived and gone, the rest stays. Call again, with a count less what went: a share would be taken of what is left. */
  complete?: boolean;
  receipt: Receipt;
}

/** What a call searched, found and dropped, and the duration of each step. */
export interface Receipt {
  /** What was searched, and how. */
  searched?: Record<string, unknown>;
  /** Candidates by arm. */
  candidates?: Record<string, number>;
  dropped?: Dropped[];
  /** How likely it is that anything found answers the query, 0 to 1, of a search. */
  fit?: number | null;
  /** Parts that did not answer, and what was done. */
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
  /** Everything in the archive; instead of ids and filters. */
  all?: boolean;
  /** How many at most by filter, those archived last first. */
  limit?: number;
  /** `next_cursor` of the call before: goes on behind what was refused. Not beside ids. */
  cursor?: string | null;
  /** Read and check the copies, and bring nothing back. */
  dry_run?: boolean;
}

export interface RestoreResult {
  /** How many are back; 0 in a dry run. */
  restored_count: number;
  /** What is back, or would be in a dry run. */
  memory_ids: string[];
  /** Ties left out, since the other memory has gone. Always empty in a dry run. */
  lost_links?: LostLink[];
  /** Memories whose time to live ran out in the archive: they got what they had left when they were archived, counted from now, and a day at least. */
  renewed_ids?: string[];
  /** Memories that came back superseded: a fact stored meanwhile has their place, or that of the memory they were read from. Always empty in a dry run. */
  superseded_ids?: string[];
  /** Memories that match and stay archived: facts and summaries of a memory that was deleted meanwhile, and facts of one that has other words; 1,000 at most. Named by its id, such a memory is a conflict. */
  refused_ids?: string[];
  /** Memories that match and stay archived: their copy is missing, damaged, or in another archive; 1,000 at most. Where ids are given and none of their copies can be read, the call fails with the error of the first. */
  unreadable_ids?: string[];
  /** Memories archived with another model's vector, or none: found by their words until they are embedded again, in the background. Always empty in a dry run. */
  waiting_for_embedding_ids?: string[];
  dry_run?: boolean;
  /** False: more match than `limit`, or time was over: call again, with `next_cursor` to go on behind what was refused. */
  complete?: boolean;
  /** Where to go on; null once all that matches was met. */
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
  /** How many memories at most. */
  k?: number;
  /** The least similarity (cosine) of a memory. */
  min_score?: number | null;
  /** Below this probability that anything found answers, nothing is returned. Absent: 0.2, or 0 with the embedding model hashing. Not applied if only words were searched. */
  min_fit?: number | null;
  /** The time 'now' of the question. */
  asked_at?: string | null;
  /** Earlier turns, oldest first: they complete a vague query. */
  history?: Turn[];
  /** Answer as of this time. */
  as_of?: string | null;
  /** A vector of the caller's, instead of the embedder's. */
  query_vector?: number[] | null;
  /** Of memories that say nearly the same, or contradict each other, the newest alone. */
  distinct?: boolean;
  /** Say where each score came from. */
  explain?: boolean;
}

export interface RetrieveResult {
  memories: MemorySummary[];
  receipt: Receipt;
}

/** The memory to revert, and the version to revert to. */
export interface RevertParams {
  memory_id: string;
  /** What the memory held at this version, it holds again. */
  version: number;
  /** Revert only this version; else a conflict. */
  if_version?: number | null;
}

export interface RevertResult {
  success: boolean;
  memory_id: string;
  /** The new version: a revert is a change like any other. */
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
  /** What holds for this agent. */
  layers: Partial<Record<MemoryType, LayerRules>>;
  /** What of it is set for this agent alone; the rest is the service's. */
  own: Partial<Record<MemoryType, LayerRules>>;
  /** Whether episodes are consolidated in the background. */
  consolidate: boolean;
  /** How old sources go to the archive once they have a summary; 0: never. */
  archive_sources_after_days: number;
  /** Whether new episodic memories are read for facts by a model. */
  extract_facts: boolean;
  /** How stretches of sessions are summarised, by the agent's rules or the service's; null: their ends keep what was said, by extraction. */
  summaries: SummaryRules | null;
  /** What language models cost this agent today. */
  llm_use: LlmUse;
  /** What of these settings works less well than it may seem. */
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
  success: boolean;
  /** One for each item, in order. */
  results: StoreResult[];
  receipt: Receipt;
}

/** The memory to store: an `interaction`, or `content` as text. */
export interface StoreParams {
  interaction?: Interaction | null;
  content?: string | null;
  /** The layer; episodic if absent. */
  memory_type?: MemoryType | null;
  /** The memory's own worth; 0.5 if absent. */
  importance?: number | null;
  tags?: string[];
  namespace?: string | null;
  user_id?: string | null;
  session_id?: string | null;
  task_id?: string | null;
  speaker?: string | null;
  /** When it happened; now if absent. More than 24 hours ahead is refused. */
  timestamp?: string | null;
  /** Seconds until it expires; null: never. Absent: as its layer has it. */
  ttl_seconds?: number | null;
  /** Never pruned, never expired. */
  pinned?: boolean;
  /** The caller's own id, given back as it is. */
  external_id?: string | null;
  /** The same key gives the same memory_id and stores nothing twice. */
  idempotency_key?: string | null;
  /** A vector of the caller's, instead of the embedder's. */
  embedding?: number[] | null;
  parent_memory_id?: string | null;
  /** Since when it holds; its timestamp if absent. */
  valid_from?: string | null;
  /** Until when it held; it still does if absent. */
  valid_to?: string | null;
  /** The memory that replaced it. */
  superseded_by?: string | null;
  links?: Link[];
  /** Store what the gate or the duplicate check would hold back. */
  force?: boolean;
  /** A changed fact takes the place of the one stored before. */
  supersede?: boolean;
  /** Keep what an assistant said with its reasoning blocks as the record's `response`. */
  keep_reasoning?: boolean;
  metadata?: Record<string, unknown>;
}

export interface StoreResult {
  success: boolean;
  memory_id: string | null;
  status: "stored" | "existing" | "reinforced" | "rejected";
  /** The memories whose place it took. */
  superseded?: string[];
  /** Told late: what was told before it, of a later time, has its place already. */
  superseded_by?: string | null;
  /** An earlier memory saying nearly the same. */
  near_duplicate_of?: string | null;
  /** Why it was rejected. */
  reason?: string | null;
  /** It matches a pattern of injected instructions. */
  flagged?: boolean;
  /** The names of the patterns it matches. */
  flags?: string[];
  /** In a batch, the code of the error that a memory.store of this item would answer with; null where it was merely not worth storing. */
  code?: number | null;
  /** In a batch, the batch's receipt stands for all. */
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
  /** Sentences of the memories themselves, in the order of their times. */
  summary: string;
  token_count: number;
  /** The memories whose sentences stand in it. */
  memory_ids: string[];
  /** How many were read: of more than 1,000 the newest, and of older ones their summaries. */
  memory_count: number;
  receipt: Receipt;
}

/** By what, and when, stretches of a session are summarised. The end of a session does it in any case. */
export interface SummaryRules {
  /** extractive: the caller's own compaction summaries, sentences of the messages for the rest; llm: a language model; compaction_aware (taken where only the trigger `compaction` is named): those summaries, a model for the rest; passthrough: those summaries, and what was said as it was said; none: no stretches, the session is summarised at its end; default: as the service has it, without rules of one's own. */
  provider?: "none" | "default" | "extractive" | "llm" | "compaction_aware" | "passthrough";
  trigger?: "user_turns" | "message_count" | "inactivity" | "compaction" | "session_end";
  /** Of a session's user, for `user_turns`. */
  user_turns?: number;
  /** Messages of a session, for `message_count`. */
  message_count?: number;
  /** Without a message in the session, for `inactivity`. */
  inactivity_seconds?: number;
  /** Sessions' summaries of one user and namespace in one such time (UTC; ISO weeks) get a summary together, from two on; null: none. */
  period?: "day" | "week" | "month" | null;
  /** Of one summary; a long stretch gives several. */
  max_tokens?: number;
  /** What a model's summaries are to be like, in the agent's own words: told to it behind the service's rules, not in their place. */
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
  /** The corrected text; summary and vector follow. */
  content?: string | null;
  /** New information, added below the content. */
  context?: string | null;
  relevance_score?: number | null;
  /** The same as relevance_score. */
  importance?: number | null;
  tags?: string[] | null;
  /** Merged into the metadata; null removes a key. */
  metadata?: Record<string, unknown> | null;
  pinned?: boolean | null;
  /** Seconds from now until it expires; null: it never does. */
  ttl_seconds?: number | null;
  /** Links to add. */
  links?: Link[];
  /** Targets whose links go. */
  unlink?: string[];
  /** A superseded memory holds again. */
  current?: true | null;
  /** Its time to live begins anew, once a twentieth of it is over. Stands alone: a use is no change; version and history stay. */
  renew?: true | null;
  /** Change only this version; else a conflict. */
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

/** Too many requests; `data.retry_after_seconds` says how long to wait. */
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
  /** Store up to 1,000 memories in one transaction, with a result for each. */
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
  /** Erase all of the agent, or of a user within it, from every place; with a signed receipt. */
  erase(params?: EraseParams, call?: CallOptions): Promise<EraseResult>;
}
