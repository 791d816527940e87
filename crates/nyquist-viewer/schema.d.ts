// The rows of answers, generated from crates/nyquist-analysis/src/schema.

/** What the amounts of an answer are parts of, and their unit */
export interface Whole {
  /** The sampling interval: a weight of 1 stands for so much CPU time, or for so many of the `unit` */
  interval_ns: number;
  /** The unit of amounts: `ns`, `bytes` or `count` */
  unit: string;
  /** The weight of all selected samples; shares are shares of this */
  weight: number;
}

/** The recording, and the selected part of it */
export interface Summary {
  /** The CPU time of all threads, as their clocks measured it */
  cpu_ns: number;
  /** From the first to the last moment of the recording, as far as it is in `--range` */
  duration_ns: number;
  /** The sampling interval: a weight of 1 stands for so much CPU time, or for so many of the `unit` */
  interval_ns: number;
  /** Of the kernel's, what could not be sampled for want of permission */
  kernel_not_permitted_weight: number;
  /** The weight in the kernel */
  kernel_weight: number;
  /** How many samples the kernel dropped */
  lost_samples: number;
  /** What weights count: `CPU time`, `waiting` with `--off-cpu`, or another tool's measure, as `inuse_space` */
  measure: string;
  /** The weight of threads that slept or ended before a sample came, or whose samples were lost */
  not_sampled_weight: number;
  /** How many processes have samples */
  process_count: number;
  /** The profile's name */
  profile: string;
  /** How many samples there are, those that stand for time without one included */
  samples: number;
  /** How many threads have samples */
  thread_count: number;
  /** The weight in stacks that do not reach their root */
  truncated_weight: number;
  /** The unit of amounts: `ns`, `bytes` or `count` */
  unit: string;
  /** The weight in user code */
  user_weight: number;
  /** The weight of all selected samples; shares are shares of this */
  weight: number;
}

/** What a process used, by a counter */
export interface CounterRow {
  /** The counter's name */
  counter: string;
  /** `peak` for the highest value, `total` for by how much it has grown */
  kind: string;
  /** The id of the process */
  pid: string;
  /** The name of the process */
  process: string;
  /** The unit of its value */
  unit: string;
  /** That value */
  value: number;
}

/** A function */
export interface FunctionRow {
  /** Its source file, or null */
  file: string | null;
  /** Its name */
  function: string;
  /** Its handle, as `f-12` */
  handle: string;
  /** The library or program that it is in, or null */
  lib: string | null;
  /** The line where it begins, or null */
  line: number | null;
  /** The weight in its own code */
  self: number;
  /** `self` in the `unit` of the answer: ns for times */
  self_amount: number;
  /** The standard error of `self_amount`, at most, if it is an estimate from sampled allocations, or null */
  self_error: number | null;
  /** `self` as a share of the whole, from 0 to 1 */
  self_share: number;
  /** The weight with what it calls; recursion counts once */
  total: number;
  /** `total` in the `unit` of the answer */
  total_amount: number;
  /** The standard error of `total_amount`, or null */
  total_error: number | null;
  /** `total` as a share of the whole */
  total_share: number;
}

/** A caller of a function, or a function that it calls */
export interface NeighborRow {
  /** Its name; `(root)` where the stack begins */
  function: string;
  /** Its handle; null where the stack begins */
  handle: string | null;
  /** The library or program that it is in, or null */
  lib: string | null;
  /** The weight of its samples */
  total: number;
  /** `total` in the `unit` of the answer: ns for times */
  total_amount: number;
  /** `total` as a share of the whole, from 0 to 1 */
  total_share: number;
}

/** A line that calls a function */
export interface CallSiteRow {
  /** The file of the call, or null */
  file: string | null;
  /** The handle of the caller */
  handle: string;
  /** The line of the call, or null */
  line: number | null;
  /** The weight of its samples */
  total: number;
  /** `total` in the `unit` of the answer: ns for times */
  total_amount: number;
  /** `total` as a share of the whole, from 0 to 1 */
  total_share: number;
}

/** A node of a call tree, or of an inverted tree, in which a node's children are its callers */
export interface NodeRow {
  /** The level, from 0; the parent is the last node before it of one level less */
  depth: number;
  /** The name of the function */
  function: string;
  /** The handle of the function */
  handle: string;
  /** Whether it has children, shown or not */
  has_children: boolean;
  /** Whether it is inlined into its caller */
  inlined: boolean;
  /** The library or program that it is in, or null */
  lib: string | null;
  /** The weight in its own code */
  self: number;
  /** `self` in the `unit` of the answer: ns for times */
  self_amount: number;
  /** `self` as a share of the whole, from 0 to 1 */
  self_share: number;
  /** The weight with what it calls; recursion counts once */
  total: number;
  /** `total` in the `unit` of the answer */
  total_amount: number;
  /** `total` as a share of the whole */
  total_share: number;
}

/** A node of a tree that is opened node by node */
export interface PathNodeRow {
  /** The level, from 0; the parent is the last node before it of one level less */
  depth: number;
  /** The name of the function */
  function: string;
  /** The handle of the function */
  handle: string;
  /** Whether it has children, shown or not */
  has_children: boolean;
  /** Whether it is inlined into its caller */
  inlined: boolean;
  /** The library or program that it is in, or null */
  lib: string | null;
  /** The numbers of the functions from the root to it, as `4.17` */
  path: string;
  /** The weight in its own code */
  self: number;
  /** `self` in the `unit` of the answer: ns for times */
  self_amount: number;
  /** `self` as a share of the whole, from 0 to 1 */
  self_share: number;
  /** The weight with what it calls; recursion counts once */
  total: number;
  /** `total` in the `unit` of the answer */
  total_amount: number;
  /** `total` as a share of the whole */
  total_share: number;
}

/** A source line */
export interface LineRow {
  /** The source file, or null */
  file: string | null;
  /** The line's number from 1, or null */
  line: number | null;
  /** The weight in its own code */
  self: number;
  /** `self` in the `unit` of the answer: ns for times */
  self_amount: number;
  /** `self` as a share of the whole, from 0 to 1 */
  self_share: number;
  /** The weight with what it calls; recursion counts once */
  total: number;
  /** `total` in the `unit` of the answer */
  total_amount: number;
  /** `total` as a share of the whole */
  total_share: number;
}

/** A source line with its text */
export interface SourceLineRow {
  /** The source file */
  file: string;
  /** The line's number, from 1 */
  line: number;
  /** The weight in its own code */
  self: number;
  /** `self` in the `unit` of the answer: ns for times */
  self_amount: number;
  /** `self` as a share of the whole, from 0 to 1 */
  self_share: number;
  /** Its text; null where the file is not here */
  source: string | null;
  /** The weight with what it calls; recursion counts once */
  total: number;
  /** `total` in the `unit` of the answer */
  total_amount: number;
  /** `total` as a share of the whole */
  total_share: number;
}

/** An instruction */
export interface InstructionRow {
  /** The relative address */
  address: number;
  /** The source file of the code that it was made of, or null */
  file: string | null;
  /** Its text, in Intel syntax */
  instruction: string;
  /** The line in that file, or null */
  line: number | null;
  /** The weight in its own code */
  self: number;
  /** `self` in the `unit` of the answer: ns for times */
  self_amount: number;
  /** `self` as a share of the whole, from 0 to 1 */
  self_share: number;
  /** The weight with what it calls; recursion counts once */
  total: number;
  /** `total` in the `unit` of the answer */
  total_amount: number;
  /** `total` as a share of the whole */
  total_share: number;
}

/** A library or program */
export interface LibRow {
  /** Its name; null for code that is in none */
  lib: string | null;
  /** Its path, or null */
  path: string | null;
  /** The weight in its own code */
  self: number;
  /** `self` in the `unit` of the answer: ns for times */
  self_amount: number;
  /** `self` as a share of the whole, from 0 to 1 */
  self_share: number;
  /** The weight with what it calls; recursion counts once */
  total: number;
  /** `total` in the `unit` of the answer */
  total_amount: number;
  /** `total` as a share of the whole */
  total_share: number;
}

/** The functions of a file, of a crate, namespace or package, or of a lib */
export interface GroupRow {
  /** Its name; null for functions that have none */
  name: string | null;
  /** The weight in its own code */
  self: number;
  /** `self` in the `unit` of the answer: ns for times */
  self_amount: number;
  /** `self` as a share of the whole, from 0 to 1 */
  self_share: number;
  /** The weight with what it calls; recursion counts once */
  total: number;
  /** `total` in the `unit` of the answer */
  total_amount: number;
  /** `total` as a share of the whole */
  total_share: number;
}

/** A thread */
export interface ThreadRow {
  /** Its handle, as `t-3` */
  handle: string;
  /** The id of its process */
  pid: string;
  /** The name of its process */
  process: string;
  /** How many samples it has */
  samples: number;
  /** Its name */
  thread: string;
  /** Its id */
  tid: string;
  /** The weight of its samples */
  total: number;
  /** `total` in the `unit` of the answer: ns for times */
  total_amount: number;
  /** `total` as a share of the whole, from 0 to 1 */
  total_share: number;
}

/** A process, without its children */
export interface ProcessRow {
  /** When it ended; null if it outlived the recording */
  end_ns: number | null;
  /** Its id */
  pid: string;
  /** Its name */
  process: string;
  /** How many samples it has */
  samples: number;
  /** When it began, since the beginning of the recording */
  start_ns: number;
  /** How many threads it has */
  threads: number;
  /** The weight of its samples */
  total: number;
  /** `total` in the `unit` of the answer: ns for times */
  total_amount: number;
  /** `total` as a share of the whole, from 0 to 1 */
  total_share: number;
}

/** The markers of a kind. Times are null where none of them has a begin and an end */
export interface MarkerRow {
  /** Their category */
  category: string;
  /** How many there are */
  count: number;
  /** How many of them have a begin and an end, or null */
  intervals: number | null;
  /** The name of their schema, or null */
  kind: string | null;
  /** Their name */
  marker: string;
  /** The longest duration */
  max_ns: number | null;
  /** The shortest duration */
  min_ns: number | null;
  /** The duration that 50 % of them do not exceed */
  p50_ns: number | null;
  /** The duration that 90 % of them do not exceed */
  p90_ns: number | null;
  /** The duration that 99 % of them do not exceed */
  p99_ns: number | null;
  /** The sum of their durations */
  total_ns: number | null;
}

/** A thing that threads of a process waited for. Waits of 0.1 ms and more are seen. As a plain user, some are seen by chance, and `total_ns` includes the others of their threads */
export interface WaitRow {
  /** How many waits there were of those that were seen */
  count: number;
  /** Threads that held it, and for how long others waited meanwhile */
  held_by: WaitThread[];
  /** The longest duration */
  max_ns: number;
  /** Which one: a futex's address, a file's path, `socket:[123]`; or null */
  object: string | null;
  /** The duration that 50 % of them do not exceed */
  p50_ns: number;
  /** The duration that 90 % of them do not exceed */
  p90_ns: number;
  /** The duration that 99 % of them do not exceed */
  p99_ns: number;
  /** The functions in which threads waited, outside of the kernel and of the language's libraries, and for how long */
  places: WaitPlaceRow[];
  /** The name of the process */
  process: string;
  /** What kind of thing: `lock`, `file`, `idle: Tokio`, `stopped`, ... */
  reason: string;
  /** Where threads waited, and for how long; `query` has none */
  stacks?: WaitStack[];
  /** How long they took, with the time of those that were not seen */
  total_ns: number;
  /** The part of `total_ns` in waits that were not seen. Where it would cost too much to see each wait, some are seen by chance and stand for the others of their threads */
  unseen_ns: number;
  /** Threads that ended the waits, and their durations; `an interrupt` for timers and devices. Root alone has them */
  woken_by: WaitThread[];
}

/** A thread that held something, or ended waits */
export interface WaitThread {
  /** Its name */
  thread: string;
  /** The time that others waited */
  total_ns: number;
}

/** A function in which threads waited */
export interface WaitPlaceRow {
  /** Its name */
  function: string;
  /** Its handle */
  handle: string;
  /** The time that threads waited there */
  total_ns: number;
}

/** A stack in which threads waited */
export interface WaitStack {
  /** Its functions, the innermost first */
  frames: string[];
  /** The time that threads waited there */
  total_ns: number;
}

/** A part of the recording */
export interface TimelinePart {
  /** The handle of the thread with the most CPU time in it, or null */
  busiest_handle: string | null;
  /** The name of that thread, or null */
  busiest_thread: string | null;
  /** How many CPUs were busy on average */
  cpus: number;
  /** Its end */
  end_ns: number;
  /** Its begin, since the beginning of the recording */
  start_ns: number;
}
