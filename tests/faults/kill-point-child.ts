/**
 * Runs a scripted database on real files and kills itself at an I/O point:
 *
 *     kill-point-child.ts <root> <seed> <point> <number of acknowledged steps>
 *
 * Writes the number of acknowledged steps to stdout after each step, and at the end "points <count>".
 */
import { type File, type Files, realFiles } from "../../src/storage/files.ts";
import { History, Opened, randomOf, script, testHeap } from "./harness.ts";

const [root, seed, dieAt, from] = [Deno.args[0], ...Deno.args.slice(1).map(Number)];
const utf8 = new TextEncoder();
const say = (text: string) => Deno.stdout.writeSync(utf8.encode(`${text}\n`));

let points = 0;
/** Every change of the file system and every sync is a point. */
function point(): void {
  if (++points === dieAt) Deno.kill(Deno.pid, "SIGKILL");
}

const files: Files = {
  ...realFiles,
  open(path, mode) {
    if (mode === "create" && !realFiles.exists(path)) point();
    const file = realFiles.open(path, mode);
    const counted: File = {
      path,
      read: (into, position) => file.read(into, position),
      write(buffers, position) {
        if (points + 1 === dieAt) {
          // Write a part before dying.
          file.write([buffers[0].subarray(0, Math.ceil(buffers[0].length / 2))], position);
        }
        point();
        return file.write(buffers, position);
      },
      truncate: (size) => (point(), file.truncate(size)),
      sync: () => (point(), file.sync()),
      dataSync: () => (point(), file.dataSync()),
      size: () => file.size(),
      close: () => file.close(),
    };
    return counted;
  },
  rename: (a, b) => (point(), realFiles.rename(a, b)),
  remove: (path) => (point(), realFiles.remove(path)),
  removeDirectory: (path) => (point(), realFiles.removeDirectory(path)),
  makeDirectory: (path) => (point(), realFiles.makeDirectory(path)),
  syncDirectory: (path) => (point(), realFiles.syncDirectory(path)),
};

const history = new History(script(seed));
const db = new Opened(files, testHeap(), randomOf(seed), { root });
const found = history.check(db, from);
say(String(found));
history.play(db, found, (done) => say(String(done)));
say(`points ${points}`);
Deno.kill(Deno.pid, "SIGKILL"); // without closing
