import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { deriveVerifier } from "../../auth/mod.ts";
import { ScramExchange } from "./scram.ts";

// The example of RFC 7677, section 3.
const CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO", SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
const NONCE = CLIENT_NONCE + SERVER_NONCE;
const PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
const verifier = await deriveVerifier("pencil", Buffer.from("W22ZaJ0SNY7soEsUEjb6gQ==", "base64"), 4096);

const begin = (clientFirst: string) => new ScramExchange(Buffer.from(clientFirst, "latin1"), verifier, SERVER_NONCE);
const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString("latin1");

Deno.test("ScramExchange conducts the conversation of RFC 7677", () => {
  const exchange = begin(`n,,n=user,r=${CLIENT_NONCE}`);
  assert.equal(text(exchange.serverFirst), `r=${NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`);
  const proof = exchange.readFinal(Buffer.from(`c=biws,r=${NONCE},p=${PROOF}`));
  assert.equal(text(proof.check()), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
});

Deno.test("ScramExchange refuses the proof of another conversation", () => {
  const exchange = begin(`n,,n=other,r=${CLIENT_NONCE}`);
  assert.equal(exchange.readFinal(Buffer.from(`c=biws,r=${NONCE},p=${PROOF}`)).check(), undefined);
});

const taken = [
  { title: "an empty user name, which libpq sends", first: `n,,n=,r=${CLIENT_NONCE}`, binding: "biws" },
  { title: "a client that would support channel binding if it were offered", first: "y,,n=,r=x", binding: "eSws" },
  { title: "extensions", first: "n,,n=u,r=x,e=1,f=2=3", binding: "biws" },
  { title: "a name that is not UTF-8", first: "n,,n=\xff,r=x", binding: "biws" },
];
for (const { title, first, binding } of taken) {
  Deno.test(`ScramExchange accepts ${title}`, () => {
    const exchange = begin(first);
    const nonce = text(exchange.serverFirst)!.slice(2).split(",")[0];
    assert.equal(exchange.readFinal(Buffer.from(`c=${binding},r=${nonce},p=${PROOF}`)).check(), undefined);
  });
}

const refusedFirst = [
  { title: "nothing", first: "" },
  { title: "a clear-text password", first: "quest\0" },
  { title: "another flag", first: "x,,n=u,r=x" },
  { title: "channel binding", first: "p=tls-server-end-point,,n=u,r=x" },
  { title: "another user to act as", first: "n,a=admin,n=u,r=x", sqlState: "0A000" },
  { title: "a mandatory extension", first: "n,,m=x,n=u,r=x", sqlState: "0A000" },
  { title: "no name", first: "n,,r=x" },
  { title: "no nonce", first: "n,,n=u" },
  { title: "an empty nonce", first: "n,,n=u,r=" },
  { title: "a nonce that cannot be printed", first: "n,,n=u,r=a b" },
  { title: "a nonce with letters that are not ASCII", first: "n,,n=u,r=\xe4" },
  { title: "a zero byte", first: "n,,n=u\0,r=x" },
  { title: "an invalid attribute after the nonce", first: "n,,n=u,r=x,yz" },
];
for (const { title, first, sqlState = "08P01" } of refusedFirst) {
  Deno.test(`ScramExchange refuses ${title} in the first message`, () =>
    assert.throws(() => begin(first), { sqlState }));
}

const refusedFinal = [
  { title: "nothing", final: "" },
  { title: "no proof", final: `c=biws,r=${NONCE}` },
  { title: "the header of another first message", final: `c=eSws,r=${NONCE},p=${PROOF}` },
  { title: "data of a channel", final: `c=biwsAAAA,r=${NONCE},p=${PROOF}` },
  { title: "the client's nonce alone", final: `c=biws,r=${CLIENT_NONCE},p=${PROOF}` },
  { title: "a longer nonce", final: `c=biws,r=${NONCE}x,p=${PROOF}` },
  { title: "a short proof", final: `c=biws,r=${NONCE},p=${PROOF.slice(4)}` },
  { title: "a long proof", final: `c=biws,r=${NONCE},p=AAAA${PROOF}` },
  { title: "a proof without its padding", final: `c=biws,r=${NONCE},p=${PROOF.slice(0, -1)}` },
  { title: "a proof that is not base64", final: `c=biws,r=${NONCE},p=${PROOF.replace("d", "*")}` },
  { title: "data after the proof", final: `c=biws,r=${NONCE},p=${PROOF},x=1` },
];
for (const { title, final } of refusedFinal) {
  Deno.test(`ScramExchange refuses ${title} in the last message`, () => {
    const exchange = begin(`n,,n=user,r=${CLIENT_NONCE}`);
    assert.throws(() => exchange.readFinal(Buffer.from(final)), { sqlState: "08P01" });
  });
}
