/** The memory that `bare-server.ts` and its worker share. */
export const WORD = { requests: 0, answers: 1, bytes: 64 } as const;
/** As large as a request of a small query. */
export const REQUEST_BYTES = 2_048;
export const ANSWER_BYTES = 64;
