/** TLS for every listener: certificates from PEM files, exchanged without a new listener, and connections under them. */
export { Certificate, type CertificateFiles, type CertificateLog } from "./certificate.ts";
export { certificateFaults, Certificates, type TlsListener } from "./certificates.ts";
export type { ByteConnection } from "./connection.ts";
