/**
 * Keys of QuestDB 9.3.4's server.conf (older ones at the end) for parts that this server does not have, such as pools,
 * queues and workers of its own threads. They are accepted without effect, also with config.validation.strict, and one
 * line in the log lists those that were found. A key that a layer declares does not belong here.
 */
export const IGNORED_KEYS: ReadonlySet<string> = new Set(
  `
binarydata.encoding.maxlength cairo.attach.partition.copy cairo.attach.partition.suffix
cairo.auto.scale.symbol.capacity cairo.auto.scale.symbol.capacity.threshold cairo.character.store.capacity
cairo.character.store.sequence.pool.capacity cairo.checkpoint.recovery.enabled
cairo.checkpoint.recovery.rebuild.column.indexes cairo.checkpoint.recovery.threadpool.max
cairo.checkpoint.recovery.threadpool.min cairo.column.indexer.queue.capacity cairo.column.pool.capacity
cairo.commit.lag cairo.commit.latency cairo.create.as.select.retry.count
cairo.create.table.column.model.pool.capacity cairo.date.locale cairo.default.sequencer.part.txn.count
cairo.detached.mkdir.mode cairo.expression.pool.capacity cairo.fast.map.load.factor cairo.file.async.munmap.enabled
cairo.file.descriptor.cache.enabled cairo.file.operation.retry.count cairo.id.generator.batch.step
cairo.idle.check.interval cairo.inactive.reader.max.open.partitions cairo.inactive.reader.ttl
cairo.inactive.writer.ttl cairo.index.value.block.size cairo.iouring.enabled cairo.latestby.queue.capacity
cairo.legacy.string.column.type.default cairo.lexer.pool.capacity cairo.mat.view.enabled
cairo.mat.view.insert.as.select.batch.size cairo.mat.view.max.refresh.intervals cairo.mat.view.max.refresh.retries
cairo.mat.view.max.refresh.step cairo.mat.view.parallel.sql.enabled cairo.mat.view.refresh.intervals.update.period
cairo.mat.view.refresh.oom.retry.timeout cairo.mat.view.rows.per.query.estimate cairo.max.array.element.count
cairo.max.crash.files cairo.max.swap.file.count cairo.max.uncommitted.rows cairo.mkdir.mode
cairo.model.pool.capacity cairo.o3.callback.queue.capacity cairo.o3.column.memory.size cairo.o3.copy.queue.capacity
cairo.o3.lag.calculation.windows.size cairo.o3.last.partition.max.splits cairo.o3.max.lag cairo.o3.min.lag
cairo.o3.open.column.queue.capacity cairo.o3.partition.overwrite.control.enabled
cairo.o3.partition.purge.list.initial.capacity cairo.o3.partition.queue.capacity cairo.o3.partition.split.min.size
cairo.o3.purge.discovery.queue.capacity cairo.o3.quicksort.enabled cairo.o3.txn.scoreboard.entry.count
cairo.page.frame.column.list.capacity cairo.page.frame.reduce.queue.capacity cairo.page.frame.rowid.list.capacity
cairo.page.frame.shard.count cairo.parallel.index.threshold cairo.parallel.indexing.enabled
cairo.parquet.export.batch.size cairo.parquet.export.bloom.filter.fpp cairo.parquet.export.compression.codec
cairo.parquet.export.compression.level cairo.parquet.export.copy.report.frequency.lines
cairo.parquet.export.data.page.size cairo.parquet.export.raw.array.encoding.enabled
cairo.parquet.export.row.group.size cairo.parquet.export.statistics.enabled cairo.parquet.export.table.prefix
cairo.parquet.export.version cairo.partition.encoder.parquet.bloom.filter.fpp
cairo.partition.encoder.parquet.compression.codec cairo.partition.encoder.parquet.compression.level
cairo.partition.encoder.parquet.data.page.size cairo.partition.encoder.parquet.min.compression.ratio
cairo.partition.encoder.parquet.o3.rewrite.unused.max.bytes cairo.partition.encoder.parquet.o3.rewrite.unused.ratio
cairo.partition.encoder.parquet.raw.array.encoding.enabled cairo.partition.encoder.parquet.row.group.size
cairo.partition.encoder.parquet.statistics.enabled cairo.partition.encoder.parquet.version
cairo.preferences.string.pool.capacity cairo.query.cache.event.queue.capacity cairo.reader.pool.max.segments
cairo.recent.write.tracker.capacity cairo.repeat.migration.from.version cairo.resource.pool.tracing.enabled
cairo.rmdir.max.depth cairo.rnd.memory.max.pages cairo.rnd.memory.page.size cairo.snapshot.recovery.enabled
cairo.spin.lock.timeout cairo.sql.analytic.column.pool.capacity cairo.sql.analytic.initial.range.buffer.size
cairo.sql.analytic.rowid.max.pages cairo.sql.analytic.rowid.page.size cairo.sql.analytic.store.max.pages
cairo.sql.analytic.store.page.size cairo.sql.analytic.tree.max.pages cairo.sql.analytic.tree.page.size
cairo.sql.asof.join.evacuation.threshold cairo.sql.asof.join.lookahead
cairo.sql.asof.join.short.circuit.cache.capacity cairo.sql.bind.variable.pool.size
cairo.sql.column.alias.expression.enabled cairo.sql.column.alias.generated.max.size
cairo.sql.column.purge.queue.capacity cairo.sql.column.purge.retry.delay cairo.sql.column.purge.retry.delay.limit
cairo.sql.column.purge.retry.delay.multiplier cairo.sql.column.purge.task.pool.capacity
cairo.sql.compile.view.model.pool.capacity cairo.sql.copier.chunked cairo.sql.copy.buffer.size
cairo.sql.copy.export.queue.capacity cairo.sql.copy.formats.file cairo.sql.copy.id.supplier
cairo.sql.copy.log.retention.days cairo.sql.copy.max.index.chunk.size cairo.sql.copy.model.pool.capacity
cairo.sql.copy.queue.capacity cairo.sql.copy.work.root cairo.sql.count.distinct.capacity
cairo.sql.count.distinct.load.factor cairo.sql.create.table.model.batch.size
cairo.sql.distinct.timestamp.key.capacity cairo.sql.distinct.timestamp.load.factor
cairo.sql.explain.model.pool.capacity cairo.sql.groupby.allocator.default.chunk.size
cairo.sql.groupby.allocator.max.chunk.size cairo.sql.groupby.map.capacity cairo.sql.groupby.pool.capacity
cairo.sql.hash.join.light.value.max.pages cairo.sql.hash.join.light.value.page.size
cairo.sql.hash.join.value.max.pages cairo.sql.hash.join.value.page.size
cairo.sql.horizon.join.bwd.scan.absolute.threshold cairo.sql.horizon.join.bwd.scan.min.gap
cairo.sql.horizon.join.bwd.scan.switch.factor cairo.sql.horizon.join.max.offsets cairo.sql.insert.model.batch.size
cairo.sql.insert.model.pool.capacity cairo.sql.interval.incremental.merge.threshold
cairo.sql.interval.max.bracket.depth cairo.sql.interval.max.intervals.after.merge
cairo.sql.jit.bind.vars.memory.max.pages cairo.sql.jit.bind.vars.memory.page.size cairo.sql.jit.debug.enabled
cairo.sql.jit.ir.memory.max.pages cairo.sql.jit.ir.memory.page.size cairo.sql.jit.max.in.list.size.threshold
cairo.sql.join.context.pool.capacity cairo.sql.join.metadata.max.resizes cairo.sql.join.metadata.page.size
cairo.sql.latest.by.row.count cairo.sql.legacy.operator.precedence cairo.sql.map.max.pages cairo.sql.map.max.resizes
cairo.sql.max.negative.limit cairo.sql.max.recompile.attempts cairo.sql.max.symbol.not.equals.count
cairo.sql.orderby.sort.enabled cairo.sql.page.frame.max.rows cairo.sql.page.frame.min.rows
cairo.sql.parallel.filter.dispatch.limit cairo.sql.parallel.filter.enabled
cairo.sql.parallel.filter.pretouch.threshold cairo.sql.parallel.groupby.enabled
cairo.sql.parallel.groupby.merge.shard.queue.capacity cairo.sql.parallel.groupby.presize.enabled
cairo.sql.parallel.groupby.presize.max.capacity cairo.sql.parallel.groupby.presize.max.heap.size
cairo.sql.parallel.groupby.sharding.threshold cairo.sql.parallel.groupby.topk.queue.capacity
cairo.sql.parallel.groupby.topk.threshold cairo.sql.parallel.horizon.join.enabled
cairo.sql.parallel.read.parquet.enabled cairo.sql.parallel.topk.enabled cairo.sql.parallel.window.join.enabled
cairo.sql.parallel.work.stealing.spin.timeout cairo.sql.parallel.work.stealing.threshold
cairo.sql.parquet.frame.cache.capacity cairo.sql.parquet.row.group.pruning.enabled
cairo.sql.pivot.column.pool.capacity cairo.sql.pivot.max.produced.columns cairo.sql.query.registry.pool.size
cairo.sql.rename.table.model.pool.capacity cairo.sql.sampleby.default.alignment.calendar
cairo.sql.sampleby.page.size cairo.sql.small.map.key.capacity cairo.sql.small.map.page.size
cairo.sql.small.page.frame.max.rows cairo.sql.small.page.frame.min.rows cairo.sql.sort.encoded.parallel.threshold
cairo.sql.sort.key.materialization.threshold cairo.sql.sort.key.max.pages cairo.sql.sort.key.page.size
cairo.sql.sort.light.value.max.pages cairo.sql.sort.light.value.page.size cairo.sql.sort.value.max.pages
cairo.sql.sort.value.page.size cairo.sql.string.function.buffer.max.size cairo.sql.unordered.map.max.entry.size
cairo.sql.unsupported.sampleby.validate.fill.type cairo.sql.view.lexer.pool.capacity
cairo.sql.window.column.pool.capacity cairo.sql.window.max.recursion cairo.sql.window.rowid.max.pages
cairo.sql.window.rowid.page.size cairo.sql.window.store.max.pages cairo.sql.window.store.page.size
cairo.sql.window.tree.max.pages cairo.sql.window.tree.page.size cairo.sql.with.clause.model.pool.capacity
cairo.symbol.table.max.allocation.page.size cairo.symbol.table.min.allocation.page.size
cairo.system.o3.column.memory.size cairo.system.table.prefix cairo.system.wal.writer.data.append.page.size
cairo.system.wal.writer.event.append.page.size cairo.system.writer.data.append.page.size
cairo.table.registry.auto.reload.frequency cairo.table.registry.compaction.threshold cairo.ttl.use.wall.clock
cairo.unordered.page.frame.reduce.queue.capacity cairo.vector.aggregate.queue.capacity
cairo.view.wal.inactive.writer.ttl cairo.view.wal.writer.pool.max.segments cairo.volumes cairo.wal.apply.enabled
cairo.wal.apply.look.ahead.txn.count cairo.wal.apply.parallel.sql.enabled cairo.wal.apply.table.time.quota
cairo.wal.enabled.default cairo.wal.inactive.writer.ttl cairo.wal.max.lag.size cairo.wal.max.lag.txn.count
cairo.wal.max.segment.file.descriptors.cache cairo.wal.purge.interval
cairo.wal.recreate.distressed.sequencer.attempts cairo.wal.segment.rollover.row.count
cairo.wal.segment.rollover.size cairo.wal.sequencer.check.interval cairo.wal.squash.uncommitted.rows.multiplier
cairo.wal.supported cairo.wal.temp.pending.rename.table.prefix cairo.wal.txn.notification.queue.capacity
cairo.wal.writer.data.append.page.size cairo.wal.writer.event.append.page.size cairo.wal.writer.madvise.mode
cairo.wal.writer.pool.max.segments cairo.work.steal.timeout.nanos cairo.write.back.off.timeout.on.mem.pressure
cairo.writer.alter.busy.wait.timeout cairo.writer.alter.max.wait.timeout cairo.writer.command.queue.capacity
cairo.writer.command.queue.slot.size cairo.writer.data.append.page.size cairo.writer.data.index.key.append.page.size
cairo.writer.data.index.value.append.page.size cairo.writer.fo_opts cairo.writer.misc.append.page.size
cairo.writer.tick.rows.count circuit.breaker.buffer.size circuit.breaker.throttle config.reload.enabled
export.worker.affinity export.worker.count export.worker.haltOnError export.worker.nap.threshold
export.worker.sleep.threshold export.worker.sleep.timeout export.worker.yield.threshold
http.busy.retry.exponential.wait.multiplier http.busy.retry.initialWaitQueueSize
http.busy.retry.maxProcessingQueueSize http.connection.pool.initial.capacity http.connection.string.pool.capacity
http.frozen.clock http.json.query.connection.check.frequency http.min.allow.deflate.before.send
http.min.connection.pool.initial.capacity http.min.connection.string.pool.capacity
http.min.multipart.header.buffer.size http.min.multipart.idle.spin.count http.min.net.accept.loop.timeout
http.min.net.connection.rcvbuf http.min.net.connection.sndbuf http.min.net.snd.buf.size http.min.receive.buffer.size
http.min.recv.buffer.size http.min.request.header.buffer.size http.min.send.buffer.size http.min.server.keep.alive
http.min.worker.nap.threshold http.min.worker.priority http.min.worker.sleep.threshold http.min.worker.sleep.timeout
http.min.worker.yield.threshold http.multipart.idle.spin.count http.net.accept.loop.timeout
http.net.connection.rcvbuf http.net.connection.sndbuf http.net.rcv.buf.size http.net.snd.buf.size
http.query.cache.block.count http.query.cache.enabled http.query.cache.row.count
http.security.interrupt.on.closed.connection http.server.cookies.enabled http.text.date.adapter.pool.capacity
http.text.decimal.adapter.pool.capacity http.text.json.cache.limit http.text.json.cache.size
http.text.lexer.string.pool.capacity http.text.max.required.delimiter.stddev
http.text.max.required.line.length.stddev http.text.metadata.string.pool.capacity http.text.roll.buffer.limit
http.text.roll.buffer.size http.text.timestamp.adapter.pool.capacity http.text.utf8.sink.size http.worker.affinity
http.worker.count http.worker.haltOnError http.worker.nap.threshold http.worker.sleep.threshold
http.worker.sleep.timeout http.worker.yield.threshold line.tcp.commit.interval.default
line.tcp.commit.interval.fraction line.tcp.connection.pool.capacity line.tcp.io.halt.on.error
line.tcp.io.worker.affinity line.tcp.io.worker.count line.tcp.io.worker.nap.threshold
line.tcp.io.worker.sleep.threshold line.tcp.io.worker.yield.threshold line.tcp.maintenance.job.interval
line.tcp.min.idle.ms.before.writer.release line.tcp.net.accept.loop.timeout
line.tcp.net.connection.heartbeat.interval line.tcp.net.connection.hint line.tcp.net.connection.queue.timeout
line.tcp.net.connection.rcvbuf line.tcp.net.queued.timeout line.tcp.net.recv.buf.size line.tcp.recv.buffer.size
line.tcp.symbol.cache.wait.before.reload line.tcp.undocumented.string.to.char.cast.allowed
line.tcp.writer.halt.on.error line.tcp.writer.queue.capacity line.tcp.writer.worker.affinity
line.tcp.writer.worker.count line.tcp.writer.worker.nap.threshold line.tcp.writer.worker.sleep.threshold
line.tcp.writer.worker.yield.threshold line.timestamp.default.column.type line.udp.commit.mode line.udp.commit.rate
line.udp.join line.udp.msg.buffer.size line.udp.msg.count line.udp.own.thread line.udp.own.thread.affinity
line.udp.receive.buffer.size line.udp.timestamp line.udp.unicast mat.view.refresh.worker.affinity
mat.view.refresh.worker.count mat.view.refresh.worker.haltOnError mat.view.refresh.worker.nap.threshold
mat.view.refresh.worker.sleep.threshold mat.view.refresh.worker.sleep.timeout
mat.view.refresh.worker.yield.threshold net.test.connection.buffer.size pg.binary.param.count.capacity
pg.character.store.capacity pg.character.store.pool.capacity pg.connection.pool.capacity pg.daemon.pool
pg.date.locale pg.halt.on.error pg.insert.cache.block.count pg.insert.cache.enabled pg.insert.cache.row.count
pg.max.blob.size.on.query pg.named.statement.cache.capacity pg.named.statement.pool.capacity
pg.net.accept.loop.timeout pg.net.connection.rcvbuf pg.net.connection.sndbuf pg.net.recv.buf.size
pg.net.send.buf.size pg.pending.writers.cache.capacity pg.pipeline.capacity pg.select.cache.block.count
pg.select.cache.enabled pg.select.cache.row.count pg.update.cache.block.count pg.update.cache.enabled
pg.update.cache.row.count pg.worker.affinity pg.worker.count pg.worker.nap.threshold pg.worker.sleep.threshold
pg.worker.yield.threshold posthog.api.key posthog.enabled query.within.latest.by.optimisation.enabled
ram.usage.limit.bytes ram.usage.limit.percent shared.network.worker.affinity shared.network.worker.count
shared.query.worker.affinity shared.worker.haltOnError shared.worker.nap.threshold shared.worker.sleep.threshold
shared.worker.sleep.timeout shared.worker.yield.threshold shared.write.worker.affinity shared.write.worker.count
table.type.conversion.enabled telemetry.db.size.estimate.timeout telemetry.disable.completely
telemetry.event.throttle.interval telemetry.hide.tables telemetry.queue.capacity telemetry.table.ttl.weeks
view.compiler.worker.affinity view.compiler.worker.count view.compiler.worker.haltOnError
view.compiler.worker.nap.threshold view.compiler.worker.sleep.threshold view.compiler.worker.sleep.timeout
view.compiler.worker.yield.threshold wal.apply.worker.affinity wal.apply.worker.count wal.apply.worker.haltOnError
wal.apply.worker.nap.threshold wal.apply.worker.sleep.threshold wal.apply.worker.sleep.timeout
wal.apply.worker.yield.threshold
cairo.default.map.type cairo.page.frame.task.pool.capacity cairo.sql.map.key.capacity cairo.sql.map.page.size
cairo.sql.orderby.radix.sort.threshold cairo.sql.window.initial.range.buffer.size pg.legacy.mode.enabled
`.trim().split(/\s+/),
);
