/**
 * The server's half of SCRAM-SHA-256, without channel binding.
 *
 *     client-first   n,,n=user,r=nonce                      n or y: the client's support of channel binding
 *     server-first   r=nonce and more,s=salt,i=iterations
 *     client-final   c=biws,r=nonce and more,p=proof        c is the beginning of client-first in base64
 *     server-final   v=signature
 *
 * Messages are kept as Latin-1, a character for each byte, because the signature covers the exact bytes.
 * @see https://www.rfc-editor.org/rfc/rfc5802#section-7
 */
import { Buffer } from "node:buffer";
import { serverSignature, type Verifier } from "../../auth/mod.ts";
import { ProtocolError, SQLSTATE } from "../../errors.ts";

export const MECHANISM = "SCRAM-SHA-256";
const PROOF_SIZE_BYTES = 32;

const GS2_HEADER = /^([ny]|p=[^,]*),(a=[^,]*)?,/;
const CLIENT_FIRST_BARE = /^n=[^,\0]*,r=([\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]=[^,\0]+)*$/;
const CLIENT_FINAL = /^c=([^,]*),r=([^,]*)(?:,[A-Za-z]=[^,\0]+)*,p=([^,]*)$/;

export class ScramExchange {
  /** The first message of the server. It contains no secret. */
  readonly serverFirst: Uint8Array;
  private readonly gs2Header: string;
  private readonly nonce: string;
  /** client-first without its header, and server-first. */
  private readonly beginning: string;

  /**
   * `serverNonce`: printable, and different each time. The user's name in `clientFirst` is ignored, as in PostgreSQL:
   * the name in the start-up message applies.
   * @throws {ProtocolError} 08P01, or 0A000 for unsupported features.
   */
  constructor(clientFirst: Uint8Array, private readonly verifier: Verifier, serverNonce: string) {
    const text = latin1(clientFirst);
    const [header, flag, authorizedAs] = GS2_HEADER.exec(text) ?? [];
    if (header === undefined) throw malformed("the first message must begin with n,, or y,,");
    if (flag?.startsWith("p")) {
      throw malformed(`the client requests channel binding, which ${MECHANISM} does not support`);
    }
    if (authorizedAs !== undefined) throw unsupported("a log-in on behalf of another user");
    const bare = text.slice(header.length);
    if (bare.startsWith("m=")) throw unsupported("a mandatory extension of SCRAM");
    const [, clientNonce] = CLIENT_FIRST_BARE.exec(bare) ?? [];
    if (clientNonce === undefined) throw malformed("invalid first message: expected n=USER,r=NONCE");
    this.gs2Header = header;
    this.nonce = clientNonce + serverNonce;
    const salt = Buffer.from(verifier.salt).toString("base64");
    const serverFirst = `r=${this.nonce},s=${salt},i=${verifier.iterations}`;
    this.beginning = `${bare},${serverFirst}`;
    this.serverFirst = Buffer.from(serverFirst, "latin1");
  }

  /**
   * Returns the client's proof as text, and its check, which returns server-final or undefined for a wrong proof.
   * @throws {ProtocolError} 08P01
   */
  readFinal(clientFinal: Uint8Array): { text: string; check: () => Uint8Array | undefined } {
    const text = latin1(clientFinal);
    const [, binding, nonce, proofText] = CLIENT_FINAL.exec(text) ?? [];
    if (proofText === undefined) throw malformed("invalid last message: expected c=HEADER,r=NONCE,p=PROOF");
    if (binding !== Buffer.from(this.gs2Header).toString("base64")) {
      throw malformed("c= of the last message is not the beginning of the first one");
    }
    if (nonce !== this.nonce) throw malformed("the nonce of the last message is not the server's");
    const proof = Buffer.from(proofText, "base64");
    if (proof.length !== PROOF_SIZE_BYTES || proof.toString("base64") !== proofText) {
      throw malformed(`p= of the last message is not ${PROOF_SIZE_BYTES} bytes in base64`);
    }
    const check = () => {
      const signed = `${this.beginning},${text.slice(0, text.lastIndexOf(",p="))}`;
      const signature = serverSignature(this.verifier, Buffer.from(signed, "latin1"), proof);
      return signature && Buffer.from(`v=${Buffer.from(signature).toString("base64")}`);
    };
    return { text: proofText, check };
  }
}

const latin1 = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
const malformed = (problem: string) => new ProtocolError(`malformed SCRAM message: ${problem}`);
const unsupported = (what: string) => new ProtocolError(`${what} is not supported`, SQLSTATE.featureNotSupported);
