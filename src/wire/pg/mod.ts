/** The PG wire's one door: `startPg`. */
