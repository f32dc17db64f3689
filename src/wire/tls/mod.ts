/** TLS for every listener: certificates from PEM files, exchanged without a new listener, and connections under them. */
export { Certificate, type CertificateFiles, type CertificateLog, contextOf, type Pem } from "./certificate.ts";
export { certificateFaults, Certificates, type TlsListener } from "./certificates.ts";
export { type ByteConnection, secure, type SecureConnection, type SecureOptions } from "./connection.ts";
