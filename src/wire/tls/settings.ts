/** Certificates of the listeners. Those of `shared` apply if a listener has none of its own. */
import { bool, optionalBool, path, type Section } from "../../config/mod.ts";

export const tlsSettings = {
  shared: {
    enabled: bool("tls.enabled", false, "TLS 1.2 and 1.3 on every listener."),
    cert: path(
      "tls.cert.path",
      "",
      "PEM file of the certificate and the intermediate certificates, relative to the root. It is read again when it " +
        "changes and by reload_config(). Open connections stay.",
    ),
    key: path(
      "tls.private.key.path",
      "",
      "PEM file of the private key without a password (PKCS#8, PKCS#1 or SEC1), relative to the root. It is read again like the certificate.",
    ),
  },
  http: {
    enabled: optionalBool("http.tls.enabled", "TLS for HTTP. Empty: tls.enabled applies."),
    cert: path("http.tls.cert.path", "", "Certificate for HTTP. Empty: tls.cert.path."),
    key: path("http.tls.private.key.path", "", "Private key for HTTP. Empty: tls.private.key.path."),
  },
  health: {
    enabled: optionalBool("http.min.tls.enabled", "TLS for the minimal HTTP server. Empty: tls.enabled applies."),
    cert: path("http.min.tls.cert.path", "", "Certificate for the minimal HTTP server. Empty: tls.cert.path."),
    key: path(
      "http.min.tls.private.key.path",
      "",
      "Private key for the minimal HTTP server. Empty: tls.private.key.path.",
    ),
  },
  pg: {
    enabled: optionalBool("pg.tls.enabled", "TLS for the PostgreSQL wire. Empty: tls.enabled applies."),
    required: bool(
      "pg.tls.required",
      false,
      "Refuses clients of the PostgreSQL wire without TLS, except cancel requests.",
    ),
    cert: path("pg.tls.cert.path", "", "Certificate for the PostgreSQL wire. Empty: tls.cert.path."),
    key: path("pg.tls.private.key.path", "", "Private key for the PostgreSQL wire. Empty: tls.private.key.path."),
  },
  lineTcp: {
    enabled: optionalBool("line.tcp.tls.enabled", "TLS for line protocol over TCP. Empty: tls.enabled applies."),
    cert: path("line.tcp.tls.cert.path", "", "Certificate for line protocol over TCP. Empty: tls.cert.path."),
    key: path(
      "line.tcp.tls.private.key.path",
      "",
      "Private key for line protocol over TCP. Empty: tls.private.key.path.",
    ),
  },
};

export const tlsSection: Section = { title: "TLS", settings: [tlsSettings] };
