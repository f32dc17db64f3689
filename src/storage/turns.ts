/**
 * The order in which the writer executes commands. A step of a bulk load may take some tenths of a second, so steps are executed
 * one at a time, and the other commands that have arrived go between two of them.
 */
import type { Envelope } from "./client.ts";
import type { Command } from "./commands.ts";

export class Turns {
  private others: Envelope[] = [];
  /** Steps of loads in the order of their arrival, and commands that must not overtake them. */
  private readonly steps: Envelope[] = [];
  private isStepNext = false;

  get isEmpty(): boolean {
    return this.others.length === 0 && this.steps.length === 0;
  }

  add(envelope: Envelope): void {
    (this.waitsForSteps(envelope.command) ? this.steps : this.others).push(envelope);
  }

  /** The commands to execute and to answer next: a step, or all others that have arrived. Neither has to wait twice in a row. */
  next(): Envelope[] {
    const isStep = this.others.length === 0 || (this.isStepNext && this.steps.length > 0);
    this.isStepNext = !isStep;
    return isStep ? this.steps.splice(0, 1) : this.others.splice(0);
  }

  /** The end of a load comes after its steps, and that of the writer after all. */
  private waitsForSteps(command: Command): boolean {
    if (command.kind === "load" || command.kind === "prepareLoad") return true;
    if (this.steps.length === 0) return false;
    if (this.steps.at(-1)!.command.kind === "close" || command.kind === "close") return true;
    const isSame = ({ command: step }: Envelope) =>
      "loadId" in step && "loadId" in command && step.loadId === command.loadId;
    return this.steps.some(isSame);
  }
}
