/**
 * Windows: a service by means of WinSW, an executable with the service's name beside an XML file of the same name. A service must
 * answer the service manager within seconds of its start, and continuously, from a separate thread. A JavaScript runtime has no such
 * thread, and FFI cannot safely call back into it from a thread that the system owns.
 * @see https://github.com/winsw/winsw
 */
import { escapeXml } from "./launchd.ts";
import { type Service, type ServiceManager, serviceName, startCommand } from "./service.ts";

/** SID of the account that the service runs as; its name depends on the language of Windows. */
const LOCAL_SERVICE = "*S-1-5-19";

/** The path of the wrapper, which is not shipped. */
export function wrapperPath(service: Service): string {
  return winsw.path(service).replace(/\.xml$/, ".exe");
}

export const winsw: ServiceManager = {
  path: ({ root, tag }) => `${root}\\service\\${serviceName(tag)}.xml`,
  install: (service) => [
    { kind: "write", path: winsw.path(service), text: winswXml(service) },
    { kind: "run", command: ["icacls", service.root, "/grant", `${LOCAL_SERVICE}:(OI)(CI)M`, "/T", "/Q"] },
    // The first event of a source registers it, which requires an administrator.
    {
      kind: "run",
      command: [
        "eventcreate",
        ...["/L", "APPLICATION", "/SO", serviceName(service.tag), "/T", "INFORMATION", "/ID", "1"],
        ...["/D", "the service is installed"],
      ],
    },
    // A definition that is already installed would be kept.
    { kind: "run", command: [wrapperPath(service), "stop"], mayFail: true },
    { kind: "run", command: [wrapperPath(service), "uninstall"], mayFail: true },
    { kind: "run", command: [wrapperPath(service), "install"] },
    { kind: "run", command: [wrapperPath(service), "start"] },
  ],
  remove: (service) => [
    { kind: "run", command: [wrapperPath(service), "stop"], mayFail: true },
    { kind: "run", command: [wrapperPath(service), "uninstall"] },
    { kind: "remove", path: winsw.path(service) },
  ],
  status: (service) => [wrapperPath(service), "status"],
};

export function winswXml(service: Service): string {
  const { tag, root } = service;
  const [executable, ...args] = startCommand(service);
  return `<service>
  <id>${escapeXml(serviceName(tag))}</id>
  <name>Sundial${tag === "sundial" ? "" : ` (${escapeXml(tag)})`}</name>
  <description>Sundial time-series database</description>
  <executable>${escapeXml(executable)}</executable>
  <arguments>${escapeXml(args.map(argument).join(" "))}</arguments>
  <workingdirectory>${escapeXml(root)}</workingdirectory>
  <startmode>Automatic</startmode>
  <serviceaccount>
    <username>NT AUTHORITY\\LocalService</username>
  </serviceaccount>
  <onfailure action="restart" delay="2 sec"/>
  <resetfailure>1 hour</resetfailure>
  <stoptimeout>30 sec</stoptimeout>
  <log mode="none"/>
</service>
`;
}

/** Quotes for CommandLineToArgvW: backslashes are special only before a quote. */
function argument(text: string): string {
  return /[\s"]/.test(text) ? `"${text.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, "$1$1")}"` : text;
}
