import assert from "node:assert/strict";
import { tokenize } from "./lexer.ts";

const read = [
  { text: "a_1 länge 高さ $1 @x", kinds: ["word", "word", "word", "parameter", "variable"] },
  { text: "1 1_000 12L .5 2. 1.5e-3 0xABcd 2.5f 1.50m 1e3", kinds: Array(10).fill("number") },
  { text: "15h 4c 1_000.5 12abc 1.2.3m", kinds: Array(5).fill("duration") },
  { text: `'it''s' "a ""b""" \`c\``, kinds: ["string", "quoted", "quoted"], texts: ["it's", 'a "b"', "c"] },
  { text: "a<<=b>>=c<>d!=e!~f::g:=h||i", kinds: Array.from({ length: 17 }, (_, i) => i % 2 ? "operator" : "word") },
  { text: "a -- b\n/* c ; */ d;", kinds: ["word", "word", "semicolon"] },
  { text: "#u33d ##0101 #u4/12", kinds: ["geohash", "geohash", "geohash"] },
  { text: "E'a\\nb' e1", kinds: ["string", "word"], texts: ["a\nb", "e1"] },
  { text: "/* a /* b */ c */ d /*/**/*/", kinds: ["word"] },
  { text: "1:2", kinds: ["number", "operator", "number"] },
];
for (const { text, kinds, texts } of read) {
  Deno.test(`tokenize() reads ${text}`, () => {
    const tokens = tokenize(text).slice(0, -1);
    assert.deepEqual(tokens.map((token) => token.kind), kinds);
    if (texts) assert.deepEqual(tokens.map((token) => token.text), texts);
    for (const token of tokens) if (token.kind === "word") assert.equal(text.slice(token.at, token.end), token.text);
  });
}

const refused = [
  { title: "an open string", text: "select 'abc", position: 7 },
  { title: "an open name", text: 'select "abc', position: 7 },
  { title: "an open comment", text: "select /* 1", position: 7 },
  { title: "an open comment with another one inside", text: "select /* a /* b */ 1", position: 7 },
  { title: "an unknown character", text: "select \\ 1", position: 7 },
  { title: "parameter 0", text: "select $0", position: 7 },
];
for (const { title, text, position } of refused) {
  Deno.test(`tokenize() refuses ${title}`, () => assert.throws(() => tokenize(text), { position }));
}
