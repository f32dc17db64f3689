/** SAMPLE BY (being written: buckets here, aggregation by ./aggregate.ts's createAggregate over an input with a bucket column, then fills). */
export {};
