/** TLS for all listeners: connections, and certificates from PEM files that can be replaced without a new listener. */
export { Certificate, type CertificateFiles, type CertificateLog, contextOf, type Pem } from "./certificate.ts";
export { certificateFaults, Certificates, type TlsListener } from "./certificates.ts";
export { secure, type SecureConnection, type SecureOptions } from "./connection.ts";
export { oneWay } from "./one-way.ts";
