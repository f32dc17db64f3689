/**
 * Windows: a service through WinSW, an executable under the service's name beside an XML file of the same name. A service must
 * answer the service manager within seconds of its start, from a thread of its own, for as long as it runs; a JavaScript
 * runtime has no such thread, and calling back into it from one that the system owns is what FFI cannot do safely.
 * @see https://github.com/winsw/winsw
 */
import { escapeXml } from "./launchd.ts";
import { type Service, type ServiceManager, serviceName, startCommand } from "./service.ts";

/** The account that the service runs as, by the name that it has in every language of Windows. */
const LOCAL_SERVICE = "*S-1-5-19";

/** Where the wrapper is to be put: it is not shipped. */
export function wrapperPath(service: Service): string {
  return winsw.path(service).replace(/\.xml$/, ".exe");
}

export const winsw: ServiceManager = {
  path: ({ root, tag }) => `${root}\\service\\${serviceName(tag)}.xml`,
  install: (service) => [
    { kind: "write", path: winsw.path(service), text: winswXml(service) },
    { kind: "run", command: ["icacls", service.root, "/grant", `${LOCAL_SERVICE}:(OI)(CI)M`, "/T", "/Q"] },
    // The first event of a source registers it, which only an administrator may.
    {
      kind: "run",
      command: [
        ...["eventcreate", "/L", "APPLICATION", "/SO", serviceName(service.tag), "/T", "INFORMATION", "/ID", "1"],
        ...["/D", "the service is installed"],
      ],
    },
    // A definition that is installed already would be kept as it was.
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

/** As CommandLineToArgvW takes it apart: backslashes count only in front of a quote. */
function argument(text: string): string {
  return /[\s"]/.test(text) ? `"${text.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, "$1$1")}"` : text;
}
