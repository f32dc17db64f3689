import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { deriveVerifier, isPasswordOf, mockVerifier, serverSignature } from "./mod.ts";
import { preparedPassword } from "./sasl-prep.ts";

const fromBase64 = (text: string) => Buffer.from(text, "base64");

// RFC 7677, section 3.
const SALT = fromBase64("W22ZaJ0SNY7soEsUEjb6gQ==");
const AUTH_MESSAGE = Buffer.from(
  "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096," +
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
);
const PROOF = fromBase64("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");

Deno.test("serverSignature() equals that of RFC 7677, and only for the right password", async () => {
  const verifier = await deriveVerifier("pencil", SALT, 4096);
  const signature = serverSignature(verifier, AUTH_MESSAGE, PROOF);
  assert.equal(Buffer.from(signature!).toString("base64"), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
  const wrong = [
    await deriveVerifier("Pencil", SALT, 4096),
    await deriveVerifier("pencil", SALT, 4097),
    await deriveVerifier("pencil", SALT.subarray(1), 4096),
    mockVerifier(SALT, 4096),
  ];
  for (const verifier of wrong) assert.equal(serverSignature(verifier, AUTH_MESSAGE, PROOF), undefined);
  for (const proof of [PROOF.subarray(1), Buffer.concat([PROOF, PROOF]), Buffer.alloc(0), Buffer.alloc(32)]) {
    assert.equal(serverSignature(verifier, AUTH_MESSAGE, proof), undefined);
  }
});

Deno.test("isPasswordOf() accepts only the right password, and no password for a mock", async () => {
  const verifier = await deriveVerifier("pencil", SALT, 4096);
  assert.equal(await isPasswordOf("pencil", verifier), true);
  for (const other of ["Pencil", "", "pencil "]) assert.equal(await isPasswordOf(other, verifier), false);
  assert.equal(await isPasswordOf("pencil", mockVerifier(SALT, 4096)), false);
});

// The first five are from RFC 4013, section 3.
const prepared = [
  { title: "removes characters that are mapped to nothing", from: "I\u00adX", to: "IX" },
  { title: "does not change ASCII", from: "user", to: "user" },
  { title: "keeps upper case", from: "USER", to: "USER" },
  { title: "composes by NFKC", from: "\u00aa", to: "a" },
  { title: "maps compatible characters", from: "\u2168", to: "IX" },
  { title: "maps other blanks to the blank", from: "a\u00a0ä", to: "a ä" },
  { title: "does not change prohibited ASCII", from: "\u0007", to: "\u0007" },
  { title: "does not change texts with other prohibited characters", from: "\u2168\ue000", to: "\u2168\ue000" },
  { title: "does not change text of both directions", from: "\u06271", to: "\u06271" },
  { title: "does not change text that would become empty", from: "\u00ad", to: "\u00ad" },
  { title: "does not change the empty text", from: "", to: "" },
];
for (const { title, from, to } of prepared) {
  Deno.test(`preparedPassword() ${title}`, async () => {
    assert.equal(new TextDecoder().decode(await preparedPassword(from)), to);
  });
}
