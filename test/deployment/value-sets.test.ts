import { describe, expect, test } from 'vitest';
import { packageVersion } from '../../src/core/package.js';
import { readSettings } from '../../src/settings/settings.js';
import { testCertificate } from '../support/certificate.js';
import { parseManifests, REQUIRED, requireHelm, runTemplate } from '../support/deployment/chart.js';
import { environmentOf, podSpecs } from '../support/deployment/pods.js';
import { findInvalid, requireSchemas } from '../support/deployment/schemas.js';

const OTHER = 'platform';
const INGRESS = { enabled: true, hosts: [{ host: 'scanfeed.example' }] };
const ROUTE = {
  enabled: true,
  parentRefs: [{ name: 'internal', namespace: 'gateways', sectionName: 'https' }],
  hostnames: ['scanfeed.example'],
};
const PASSWORD = {
  type: 'ExtensionRef',
  extensionRef: { group: 'gateway.example', kind: 'BasicAuth', name: 'scanfeed-users' },
};
const ANYWHERE = { to: [{ ipBlock: { cidr: '192.0.2.0/24' } }] };
const POLICY = { enabled: true, egress: { service: ANYWHERE, database: ANYWHERE } };
const JOB = { ...REQUIRED.database, migrations: 'job' };
const SECRET = { valueFrom: { secretKeyRef: { name: 'other', key: 'key' } } };
const PROBE = { httpGet: { path: '/readyz', port: 'scanfeed' }, failureThreshold: 30 };

const pod = (spec: object) => ({ Deployment: { spec: { template: { spec } } } });
const container = (spec: object) => pod({ containers: [spec] });
const image = (name: string) => container({ image: name });
const ON = { enabled: true };
const password = (settings: object) => ({ database: { ...REQUIRED.database, passwordKey: 'password' }, settings });
const polledEvery = (interval: string | undefined, alerts: object = {}) => ({
  settings: { SCANFEED_POLL_INTERVAL: interval },
  podMonitor: ON,
  prometheusRule: { ...ON, alerts },
});
const memory = (limit: unknown, more: object = {}) => ({ resources: { limits: { memory: limit }, ...more } });

/** By kind: a part of the manifest, or null if there must be none. */
type Expected = Readonly<Record<string, object | null>>;

/** What is rendered, besides the minimal values. */
const RENDERED: readonly (readonly [what: string, values: object, expected: Expected])[] = [
  [
    'annotations of Reloader and Argo CD',
    {
      commonAnnotations: { owner: 'documents', 'argocd.argoproj.io/sync-wave': '1' },
      deploymentAnnotations: { 'reloader.stakater.com/auto': 'true', 'argocd.argoproj.io/sync-wave': '2' },
    },
    {
      Deployment: {
        metadata: {
          annotations: {
            owner: 'documents',
            'reloader.stakater.com/auto': 'true',
            'argocd.argoproj.io/sync-wave': '2',
          },
        },
        spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/default-container': 'scanfeed' } } } },
      },
      ServiceAccount: { metadata: { annotations: { owner: 'documents', 'argocd.argoproj.io/sync-wave': '1' } } },
    },
  ],
  [
    'the list of several feeds, with the secrets of their keys',
    {
      feeds: [
        { name: 'acme', apiKey: { existingSecret: 'keys', key: 'acme' }, markdown: true },
        { name: '007', apiKey: { existingSecret: 'keys', key: 'bond' }, filters: { status: ['failed'] } },
        { name: 'globex' },
      ],
      nameOverride: 'feeds',
      commonAnnotations: { owner: 'documents' },
    },
    {
      ConfigMap: {
        metadata: { name: 'invoices-feeds-feeds', annotations: { owner: 'documents' } },
        data: {
          'feeds.yaml': `- apiKeyFile: /etc/scanfeed-keys/keys/acme
  markdown: true
  name: acme
- apiKeyFile: /etc/scanfeed-keys/keys/bond
  filters:
    status:
    - failed
  name: "007"
- name: globex
`,
        },
      },
      Deployment: {
        spec: {
          template: {
            spec: {
              volumes: [{}, { name: 'feeds-keys-0', secret: { secretName: 'keys', defaultMode: 0o444 } }],
              containers: [
                { volumeMounts: [{}, { name: 'feeds-keys-0', mountPath: '/etc/scanfeed-keys/keys', readOnly: true }] },
              ],
            },
          },
        },
      },
    },
  ],
  [
    'the alerts of all feeds of a list',
    { feeds: [{ name: 'acme' }], podMonitor: { enabled: true }, prometheusRule: { enabled: true } },
    {
      PrometheusRule: {
        spec: {
          groups: [
            {
              rules: expect.arrayContaining([
                rule('ScanfeedDown', '{namespace="documents", job="documents/invoices-scanfeed"}'),
              ]),
            },
          ],
        },
      },
    },
  ],
  [
    'the container of another name as the default one of kubectl',
    { nameOverride: 'feed' },
    {
      Deployment: {
        spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/default-container': 'feed' } } } },
      },
    },
  ],
  [
    'another namespace, in the alerts too',
    {
      namespaceOverride: OTHER,
      podMonitor: { enabled: true, namespace: 'monitoring' },
      prometheusRule: { enabled: true },
    },
    {
      Deployment: { metadata: { namespace: OTHER } },
      ServiceAccount: { metadata: { namespace: OTHER } },
      PrometheusRule: {
        metadata: { namespace: OTHER },
        spec: {
          groups: [
            {
              rules: expect.arrayContaining([
                rule('ScanfeedDown', `namespace="${OTHER}", job="monitoring/${OTHER}-invoices-scanfeed"`),
              ]),
            },
          ],
        },
      },
    },
  ],
  [
    'name servers of its own',
    { dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.53'] } },
    pod({ dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.53'] } }),
  ],
  [
    'a runtime class and a scheduler',
    { runtimeClassName: 'gvisor', schedulerName: 'second', database: JOB },
    {
      ...pod({ runtimeClassName: 'gvisor', schedulerName: 'second' }),
      Job: { spec: { template: { spec: { runtimeClassName: 'gvisor', schedulerName: 'second' } } } },
    },
  ],
  [
    'a pause before it is stopped',
    { lifecycle: { preStop: { sleep: { seconds: 5 } } } },
    container({ lifecycle: { preStop: { sleep: { seconds: 5 } } } }),
  ],
  [
    'a startup probe, of the port by its name',
    { startupProbe: PROBE, nameOverride: 'feed' },
    container({ startupProbe: { httpGet: { path: '/readyz', port: 'feed' }, failureThreshold: 30 } }),
  ],
  ['the released image', {}, image(`ghcr.io/scanfeed/scanfeed:${packageVersion()}`)],
  [
    'an image of the machine',
    { image: { registry: '', repository: 'scanfeed' } },
    image(`scanfeed:${packageVersion()}`),
  ],
  [
    'a registry',
    { image: { registry: 'registry.example' } },
    image(`registry.example/scanfeed/scanfeed:${packageVersion()}`),
  ],
  [
    'a registry in the name of the image',
    { image: { repository: 'registry.example:5000/documents/scanfeed', tag: '1.2.3' } },
    image('registry.example:5000/documents/scanfeed:1.2.3'),
  ],
  [
    'the registry of all charts, in the place of its own',
    { global: { imageRegistry: 'mirror.example/' }, image: { registry: 'registry.example', repository: 'a/scanfeed' } },
    image(`mirror.example/a/scanfeed:${packageVersion()}`),
  ],
  [
    'the pull secrets of all charts and its own, each once',
    { global: { imagePullSecrets: ['all', { name: 'both' }] }, imagePullSecrets: [{ name: 'both' }, 'own'] },
    pod({ imagePullSecrets: [{ name: 'all' }, { name: 'both' }, { name: 'own' }] }),
  ],
  [
    'global values of other charts',
    { global: { storageClass: 'fast', imagePullSecrets: null } },
    image(`ghcr.io/scanfeed/scanfeed:${packageVersion()}`),
  ],
  ['no Service', {}, { Service: null, Ingress: null }],
  [
    'a LoadBalancer on another port',
    {
      service: {
        enabled: true,
        type: 'LoadBalancer',
        port: 80,
        nodePort: 30847,
        loadBalancerSourceRanges: ['10.0.0.0/8'],
      },
      commonAnnotations: { owner: 'documents' },
    },
    {
      Service: {
        metadata: { annotations: { owner: 'documents' } },
        spec: {
          type: 'LoadBalancer',
          loadBalancerSourceRanges: ['10.0.0.0/8'],
          ports: [{ port: 80, nodePort: 30847, targetPort: 'scanfeed' }],
        },
      },
    },
  ],
  [
    'an ingress, with its Service',
    { ingress: { ...INGRESS, className: 'nginx', annotations: { 'cert-manager.io/issuer': 'internal' } } },
    {
      Service: { spec: { type: 'ClusterIP', ports: [{ name: 'http-scanfeed', port: 9847 }] } },
      Ingress: {
        metadata: { annotations: { 'cert-manager.io/issuer': 'internal' } },
        spec: {
          ingressClassName: 'nginx',
          rules: [{ host: 'scanfeed.example', http: { paths: [ingressPath('/', 'Prefix')] } }],
        },
      },
    },
  ],
  [
    'an ingress with TLS below a path',
    {
      ingress: {
        enabled: true,
        hosts: [{ host: 'tools.example', paths: [{ path: '/scanfeed', pathType: 'ImplementationSpecific' }] }],
        tls: [{ secretName: 'tools-tls', hosts: ['tools.example'] }],
      },
    },
    {
      Ingress: {
        spec: {
          rules: [{ host: 'tools.example', http: { paths: [ingressPath('/scanfeed', 'ImplementationSpecific')] } }],
          tls: [{ secretName: 'tools-tls', hosts: ['tools.example'] }],
        },
      },
    },
  ],
  [
    'an HTTPRoute, with its Service',
    {
      httpRoute: { ...ROUTE, labels: { team: 'documents' }, annotations: { note: 'internal' } },
      service: { port: 80 },
    },
    {
      Service: { spec: { type: 'ClusterIP', ports: [{ name: 'http-scanfeed', port: 80 }] } },
      Ingress: null,
      HTTPRoute: {
        apiVersion: 'gateway.networking.k8s.io/v1',
        metadata: { labels: { team: 'documents' }, annotations: { note: 'internal' } },
        spec: {
          parentRefs: exactly(ROUTE.parentRefs),
          hostnames: ['scanfeed.example'],
          rules: exactly([
            {
              matches: [{ path: { type: 'PathPrefix', value: '/' } }],
              backendRefs: [{ name: 'invoices-scanfeed', port: 80 }],
            },
          ]),
        },
      },
    },
  ],
  [
    'an HTTPRoute below a path that the Gateway removes, beside an ingress',
    { httpRoute: { ...ROUTE, path: '/scanfeed', filters: [PASSWORD] }, ingress: INGRESS, dashboard: ON },
    {
      Ingress: { spec: { rules: [{ host: 'scanfeed.example' }] } },
      HTTPRoute: {
        spec: {
          rules: [
            {
              matches: [{ path: { value: '/scanfeed' } }],
              filters: [
                PASSWORD,
                {
                  type: 'URLRewrite',
                  urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } },
                },
              ],
              backendRefs: [{ port: 9847 }],
            },
          ],
        },
      },
      ConfigMap: { data: linksTo('http://scanfeed.example/') },
    },
  ],
  [
    'a link to the status page of an HTTPRoute',
    { httpRoute: { ...ROUTE, path: '/scanfeed/' }, dashboard: ON },
    { ConfigMap: { data: linksTo('https://scanfeed.example/scanfeed/') } },
  ],
  [
    'no link to a host with a wildcard',
    { httpRoute: { ...ROUTE, hostnames: ['*.example'] }, dashboard: ON },
    { ConfigMap: { data: expect.not.toSatisfy((data) => JSON.stringify(data).includes('Status page')) } },
  ],
  [
    'a Service of both families of addresses',
    { service: { ...ON, ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6', 'IPv4'] } },
    { Service: { spec: { ipFamilyPolicy: 'PreferDualStack', ipFamilies: exactly(['IPv6', 'IPv4']) } } },
  ],
  [
    'a disruption budget of replicas that must stay',
    {
      replicaCount: 3,
      podDisruptionBudget: {
        minAvailable: '51%',
        unhealthyPodEvictionPolicy: 'IfHealthyBudget',
        labels: { team: 'documents' },
        annotations: { note: 'drain' },
      },
    },
    {
      PodDisruptionBudget: {
        metadata: { labels: { team: 'documents' }, annotations: { note: 'drain' } },
        spec: exactly({
          minAvailable: '51%',
          unhealthyPodEvictionPolicy: 'IfHealthyBudget',
          selector: {
            matchLabels: {
              'app.kubernetes.io/name': 'scanfeed',
              'app.kubernetes.io/instance': 'invoices',
              'app.kubernetes.io/component': 'daemon',
            },
          },
        }),
      },
    },
  ],
  [
    'limits and labels of a PodMonitor, and of its pods',
    { podMonitor: { ...ON, sampleLimit: 2_000_000, honorLabels: true, podTargetLabels: ['team'] } },
    {
      PodMonitor: {
        spec: { sampleLimit: 2_000_000, podTargetLabels: ['team'], podMetricsEndpoints: [{ honorLabels: true }] },
      },
    },
  ],
  [
    'limits and labels of a ServiceMonitor, and of its Service',
    {
      serviceMonitor: {
        ...ON,
        sampleLimit: 2000,
        honorLabels: true,
        targetLabels: ['team'],
        podTargetLabels: ['tier'],
      },
    },
    {
      ServiceMonitor: {
        spec: {
          sampleLimit: 2000,
          targetLabels: ['team'],
          podTargetLabels: ['tier'],
          endpoints: [{ honorLabels: true }],
        },
      },
    },
  ],
  ['processes that its containers share', { shareProcessNamespace: true }, pod({ shareProcessNamespace: true })],
  [
    'labels and annotations of a network policy',
    { networkPolicy: { ...POLICY, labels: { team: 'network' }, annotations: { note: 'closed' } } },
    { NetworkPolicy: { metadata: { labels: { team: 'network' }, annotations: { note: 'closed' } } } },
  ],
  [
    'a PodMonitor in the namespace of Prometheus, over TLS',
    {
      podMonitor: {
        enabled: true,
        namespace: 'monitoring',
        annotations: { note: 'mesh' },
        scheme: 'https',
        tlsConfig: { insecureSkipVerify: true, serverName: 'scanfeed' },
      },
    },
    {
      PodMonitor: {
        metadata: {
          name: 'documents-invoices-scanfeed',
          namespace: 'monitoring',
          annotations: { note: 'mesh' },
        },
        spec: {
          namespaceSelector: { matchNames: ['documents'] },
          podMetricsEndpoints: [
            { port: 'scanfeed', scheme: 'https', tlsConfig: { insecureSkipVerify: true, serverName: 'scanfeed' } },
          ],
        },
      },
    },
  ],
  [
    'rules and a dashboard in other namespaces, with names that no release of another namespace has',
    {
      serviceMonitor: { enabled: true },
      prometheusRule: { enabled: true, namespace: 'monitoring' },
      dashboard: { enabled: true, namespace: 'grafana' },
    },
    {
      PrometheusRule: {
        metadata: { name: 'documents-invoices-scanfeed', namespace: 'monitoring' },
        spec: { groups: [{ rules: expect.arrayContaining([rule('ScanfeedDown', 'job="invoices-scanfeed"')]) }] },
      },
      ConfigMap: { metadata: { name: 'documents-invoices-scanfeed-dashboard', namespace: 'grafana' } },
    },
  ],
  [
    'a ServiceMonitor in another namespace than the pods of another namespace',
    { namespaceOverride: OTHER, serviceMonitor: { enabled: true, namespace: 'monitoring', scheme: 'https' } },
    {
      Service: { metadata: { namespace: OTHER } },
      ServiceMonitor: {
        metadata: { name: 'platform-invoices-scanfeed', namespace: 'monitoring' },
        spec: { namespaceSelector: { matchNames: [OTHER] }, endpoints: [{ scheme: 'https' }] },
      },
    },
  ],
  [
    'a migration before the sync of Argo CD',
    {
      database: {
        ...JOB,
        migrationJob: {
          annotations: {
            'helm.sh/hook': null,
            'helm.sh/hook-delete-policy': null,
            'argocd.argoproj.io/hook': 'PreSync',
          },
        },
      },
    },
    { Job: { metadata: { annotations: exactly({ 'argocd.argoproj.io/hook': 'PreSync' }) } } },
  ],
  [
    'a migration with the weight of a hook',
    { database: { ...JOB, migrationJob: { annotations: { 'helm.sh/hook-weight': '5' } } } },
    {
      Job: {
        metadata: {
          annotations: exactly({
            'helm.sh/hook': 'pre-install,pre-upgrade',
            'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
            'helm.sh/hook-weight': '5',
          }),
        },
      },
    },
  ],
  ['a variable of its own', { extraEnv: [{ name: 'TZ', value: 'UTC' }] }, container({ env: having('TZ', 'UTC') })],
  [
    'authorities in a volume of its own',
    { extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/authorities/ca.crt' }] },
    container({ env: having('NODE_EXTRA_CA_CERTS', '/authorities/ca.crt') }),
  ],
  [
    'durations and sizes at their limits',
    {
      settings: {
        SCANFEED_POLL_INTERVAL: '1440 m',
        SCANFEED_RECONCILE_INTERVAL: '1000ms',
        SCANFEED_RECONCILE_WINDOW: '365d',
        SCANFEED_RECONCILE_FULL_INTERVAL: 'off',
        SCANFEED_SHUTDOWN_TIMEOUT: '0s',
        SCANFEED_MEMORY_BUDGET: '1MiB',
      },
    },
    container({ env: having('SCANFEED_POLL_INTERVAL', '1440 m') }),
  ],
  [
    'settings as YAML reads them without quotes',
    {
      settings: {
        SCANFEED_RECONCILE_INTERVAL: false, // off
        SCANFEED_TYPED_VIEWS: false,
        SCANFEED_HISTORY: false,
        SCANFEED_MARKDOWN: true,
        SCANFEED_PAGE_LIMIT: 50,
        SCANFEED_REQUESTS_PER_SECOND: 0.5,
        SCANFEED_RETENTION_DAYS: 36_500,
        SCANFEED_DOCUMENT_TYPE: '007',
      },
    },
    container({
      env: expect.arrayContaining([
        { name: 'SCANFEED_RECONCILE_INTERVAL', value: 'off' },
        { name: 'SCANFEED_TYPED_VIEWS', value: 'off' },
        { name: 'SCANFEED_HISTORY', value: 'off' },
        { name: 'SCANFEED_MARKDOWN', value: 'true' },
        { name: 'SCANFEED_PAGE_LIMIT', value: '50' },
        { name: 'SCANFEED_REQUESTS_PER_SECOND', value: '0.5' },
        { name: 'SCANFEED_RETENTION_DAYS', value: '36500' },
        { name: 'SCANFEED_DOCUMENT_TYPE', value: '007' },
      ]),
    }),
  ],
  ['a memory limit in bytes', memory(268_435_456), container(memory(268_435_456))],
  [
    'no memory limit',
    { resources: { limits: { memory: null } } },
    container({ resources: { requests: { cpu: '50m' } } }),
  ],
  [
    'a small memory limit with a small budget',
    { ...memory('160Mi'), settings: { SCANFEED_MEMORY_BUDGET: '16MiB' } },
    container({ ...memory('160Mi'), env: having('SCANFEED_MEMORY_BUDGET', '16MiB') }),
  ],
  [
    'plain HTTP to a service mesh, and to the same pod',
    { baseUrl: 'http://recognition/v1', settings: { SCANFEED_ALLOW_HTTP: true } },
    container({ env: having('SCANFEED_BASE_URL', 'http://recognition/v1') }),
  ],
  [
    'windows of the alerts that follow from the scrape interval',
    {
      podMonitor: { ...ON, interval: '1m30s' },
      prometheusRule: { ...ON, interval: '2m', alerts: { Down: { window: '5m' } } },
    },
    {
      PrometheusRule: {
        spec: {
          groups: [
            {
              rules: expect.arrayContaining([
                rule('ScanfeedDown', '[9m]'), // six scrapes, of three starts
                rule('ScanfeedStalled', '[15m]'),
                rule('ScanfeedAuthenticationFailing', '[6m]', '8m'),
                rule('ScanfeedDatabaseUnavailable', '[6m]', '8m'),
              ]),
            },
          ],
        },
      },
    },
  ],
  [
    'windows for the given scrape interval of other monitors',
    { prometheusRule: { ...ON, selector: 'job =~ "a|b" , x!="}"', scrapeInterval: '55s' } },
    {
      PrometheusRule: {
        spec: { groups: [{ rules: expect.arrayContaining([rule('ScanfeedDatabaseUnavailable', '[220s]', '340s')]) }] },
      },
    },
  ],
  [
    'rare scrapes and polls without alerts',
    { podMonitor: { ...ON, interval: '10m', scrapeTimeout: '10m' }, settings: { SCANFEED_POLL_INTERVAL: '1d' } },
    { PodMonitor: { spec: { podMetricsEndpoints: [{ interval: '10m', scrapeTimeout: '10m' }] } } },
  ],
  ['polls as rare as the alerts allow', polledEvery('570s'), {}],
  [
    'polls that are rarer than the threshold of a disabled alert',
    polledEvery('15m', { Stalled: { enabled: false }, LagHigh: { warning: 1800 } }),
    {},
  ],
  [
    'a role in variables of their own',
    {
      ...password({ PGHOST: 'db.example' }),
      extraEnv: [{ name: 'PGUSER', value: 'scanfeed' }],
      terminationGracePeriodSeconds: 11,
    },
    pod({ terminationGracePeriodSeconds: 11 }),
  ],
  [
    'root where it is allowed',
    { securityContext: { runAsUser: 0, runAsNonRoot: false } },
    container({ securityContext: { runAsUser: 0, runAsNonRoot: false } }),
  ],
  [
    'an admin host within the pod, with probes that run a command',
    {
      settings: { SCANFEED_ADMIN_HOST: '127.0.0.1' },
      livenessProbe: { httpGet: null, exec: { command: ['scanfeed', 'status'] } },
      readinessProbe: null,
    },
    container({ livenessProbe: { exec: { command: ['scanfeed', 'status'] } } }),
  ],
  ['plain HTTP within the pod', { baseUrl: 'http://127.0.0.1:8080/v1' }, container({})],
];

/** What is rejected, and a part of the message. */
const REJECTED: readonly (readonly [what: string, values: object, complaint: string])[] = [
  ['a DNS policy without servers', { dnsPolicy: 'None' }, 'dnsPolicy: None requires dnsConfig.nameservers'],
  ['a DNS policy that does not exist', { dnsPolicy: 'Cluster' }, '/dnsPolicy'],
  ['a startup probe of a sidecar', { mode: 'sidecar', startupProbe: PROBE }, 'startupProbe: '],
  ['a Service of a sidecar', { mode: 'sidecar', service: { enabled: true } }, 'service.enabled: '],
  ['an ingress of a sidecar', { mode: 'sidecar', ingress: INGRESS }, 'ingress.enabled: '],
  ['a type of no Service', { service: { type: 'NodePort' } }, 'service.type: NodePort'],
  ['a port of the nodes without their Service', { service: { enabled: true, nodePort: 30847 } }, 'service.nodePort: '],
  [
    'clients of no LoadBalancer',
    { service: { enabled: true, loadBalancerSourceRanges: ['10.0.0.0/8'] } },
    'service.loadBalancerSourceRanges: ',
  ],
  ['an ingress without a host', { ingress: { enabled: true } }, 'ingress.hosts: '],
  ['an ingress for every host', { ingress: { enabled: true, hosts: [{ host: '' }] } }, '/ingress/hosts/0/host'],
  ['an ingress that a policy closes', { ingress: INGRESS, networkPolicy: POLICY }, 'ingress.enabled: networkPolicy'],
  ['TLS without it', { podMonitor: { enabled: true, tlsConfig: { serverName: 'a' } } }, 'podMonitor.tlsConfig: '],
  [
    'two registries',
    { global: { imageRegistry: 'mirror.example' }, image: { repository: 'registry.example/scanfeed' } },
    'image.repository: registry.example/scanfeed names a registry',
  ],
  ['a tag in the name of the image', { image: { repository: 'scanfeed', tag: '1:2' } }, '/image/tag'],
  ['a pull secret without a name', { global: { imagePullSecrets: [{}] } }, '/global/imagePullSecrets/0'],
  [
    'a migration that is no hook',
    { database: { ...JOB, migrationJob: { annotations: { 'helm.sh/hook': null } } } },
    'database.migrationJob.annotations: ',
  ],
  [
    'the key as a variable',
    { extraEnv: [{ name: 'SCANFEED_API_KEY', ...SECRET }] },
    'SCANFEED_API_KEY is set by the value apiKey',
  ],
  [
    'the address as a variable',
    { extraEnv: [{ name: 'DATABASE_URL', ...SECRET }] },
    'DATABASE_URL is set by the value database',
  ],
  ['the address as a file', { extraEnv: [{ name: 'DATABASE_URL_FILE', value: '/a' }] }, 'DATABASE_URL_FILE is set by'],
  ['the password as a variable', { extraEnv: [{ name: 'PGPASSWORD', ...SECRET }] }, 'PGPASSWORD is set by the value'],
  [
    'a setting twice',
    { settings: { PGHOST: 'a' }, extraEnv: [{ name: 'PGHOST', value: 'b' }] },
    'PGHOST is set by the value settings.PGHOST',
  ],
  [
    'two sources of the authorities',
    { database: { ...REQUIRED.database, ca: { secret: 'ca' } }, extraEnv: [{ name: 'PGSSLROOTCERT', value: '/a' }] },
    'PGSSLROOTCERT is set by the value database.ca',
  ],
  [
    'two proxies',
    { proxy: { url: 'http://a.example' }, extraEnv: [{ name: 'HTTPS_PROXY', value: 'b' }] },
    'HTTPS_PROXY is set by the value proxy',
  ],
  ['a log level that does not exist', { settings: { SCANFEED_LOG_LEVEL: 'verbose' } }, '/settings/SCANFEED_LOG_LEVEL'],
  ['a duration without a unit', { settings: { SCANFEED_POLL_INTERVAL: 5 } }, '/settings/SCANFEED_POLL_INTERVAL'],
  [
    'a duration that is too long',
    { settings: { SCANFEED_POLL_INTERVAL: '2d' } },
    'settings.SCANFEED_POLL_INTERVAL: 2d is not in the range from 10ms to 1d',
  ],
  [
    'a duration that is too short',
    { settings: { SCANFEED_RECONCILE_INTERVAL: '999.9ms' } },
    'settings.SCANFEED_RECONCILE_INTERVAL: 999.9ms is not in the range from 1s to 365d',
  ],
  [
    'a size that is too small',
    { settings: { SCANFEED_MEMORY_BUDGET: '1000KiB' } },
    'settings.SCANFEED_MEMORY_BUDGET: 1000KiB is not in the range from 1MiB to 16GiB',
  ],
  [
    'a number in quotes that is too large',
    { settings: { SCANFEED_PAGE_LIMIT: '1000' } },
    'settings.SCANFEED_PAGE_LIMIT: 1000 is not in the range from 1 to 200',
  ],
  [
    'a rate in quotes that is 0',
    { settings: { SCANFEED_REQUESTS_PER_SECOND: '0.0' } },
    'settings.SCANFEED_REQUESTS_PER_SECOND: 0.0 is not in the range from 0.000001 to 10000',
  ],
  [
    'a retention in quotes that is too long',
    { settings: { SCANFEED_RETENTION_DAYS: '36501' } },
    'settings.SCANFEED_RETENTION_DAYS: 36501 is not in the range from 1 to 36500',
  ],
  ['a time without seconds', { settings: { SCANFEED_START: '2026-01-31T00:00Z' } }, '/settings/SCANFEED_START'],
  ['a number that is too large', { settings: { SCANFEED_PAGE_LIMIT: 1000 } }, '/settings/SCANFEED_PAGE_LIMIT'],
  ['a size of Kubernetes', { settings: { SCANFEED_MEMORY_BUDGET: '64Mi' } }, '/settings/SCANFEED_MEMORY_BUDGET'],
  [
    'a document type that YAML took for a number',
    { settings: { SCANFEED_DOCUMENT_TYPE: 7 } },
    '/settings/SCANFEED_DOCUMENT_TYPE',
  ],
  ['one of two dashboards', { dashboard: { allFeeds: true } }, 'dashboard.allFeeds: '],
  ['an address that is none', { dashboard: { statusPageUrl: 'scanfeed.example' } }, '/dashboard/statusPageUrl'],
  ['a route without a Gateway', { httpRoute: { ...ROUTE, parentRefs: [] } }, 'httpRoute.parentRefs: at least one'],
  ['a route of every host', { httpRoute: { ...ROUTE, hostnames: [] } }, 'httpRoute.hostnames: at least one host'],
  ['a Gateway without a name', { httpRoute: { ...ROUTE, parentRefs: [{}] } }, '/httpRoute/parentRefs/0'],
  ['a route of a sidecar', { mode: 'sidecar', httpRoute: ROUTE }, 'httpRoute.enabled: a sidecar has no Service'],
  [
    'a route that a policy closes',
    { httpRoute: ROUTE, networkPolicy: POLICY },
    'httpRoute.enabled: networkPolicy.ingress.from must allow the pods of the Gateway',
  ],
  ['a family of addresses that does not exist', { service: { ipFamilies: ['IPv5'] } }, '/service/ipFamilies/0'],
  [
    'two families of a single stack',
    { service: { ...ON, ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4', 'IPv6'] } },
    'service.ipFamilyPolicy: SingleStack',
  ],
  [
    'a disruption budget that blocks every drain',
    { replicaCount: 2, podDisruptionBudget: { minAvailable: 2 } },
    'podDisruptionBudget.minAvailable: 2 of 2 replicas would block',
  ],
  [
    'a share of the replicas that is rounded up to all',
    { replicaCount: 2, podDisruptionBudget: { minAvailable: '51%' } },
    'podDisruptionBudget.minAvailable: 51% of 2 replicas',
  ],
  [
    'a disruption budget of nothing',
    { replicaCount: 2, podDisruptionBudget: { maxUnavailable: '0%' } },
    'podDisruptionBudget.maxUnavailable: 0% would block',
  ],
  ['a limit of no series', { podMonitor: { ...ON, sampleLimit: 0 } }, '/podMonitor/sampleLimit'],
  ['a memory limit of a few bytes', memory(1_000_000), 'resources.limits.memory: 1000000 is too small'],
  ['a memory limit that is too small', memory('128Mi'), 'resources.limits.memory: 128Mi is too small'],
  [
    'one that lacks a little',
    memory('256M'),
    'resources.limits.memory: 256M is too small; with SCANFEED_MEMORY_BUDGET 64MiB at least 256Mi',
  ],
  [
    'one that a budget does not fit into',
    { ...memory('0.5Gi'), settings: { SCANFEED_MEMORY_BUDGET: '256MiB' } },
    'resources.limits.memory: 0.5Gi is too small; with SCANFEED_MEMORY_BUDGET 256MiB at least 640Mi',
  ],
  ['more memory than the limit', memory('256Mi', { requests: { memory: '1Gi' } }), 'resources.requests.memory: 1Gi'],
  ['plain HTTP', { baseUrl: 'http://recognition.example/v1' }, 'baseUrl: http:'],
  ['plain HTTP to a similar name', { baseUrl: 'http://localhost.example/v1' }, 'baseUrl: http:'],
  ['monitors that a policy closes', { podMonitor: ON, networkPolicy: POLICY }, 'podMonitor.enabled: networkPolicy'],
  [
    'a ServiceMonitor that a policy closes',
    { serviceMonitor: ON, networkPolicy: POLICY },
    'serviceMonitor.enabled: net',
  ],
  ['a Service that a policy closes', { service: ON, networkPolicy: POLICY }, 'service.enabled: networkPolicy'],
  [
    'alerts of scrapes that a policy closes',
    { prometheusRule: { ...ON, selector: 'job="a"' }, networkPolicy: POLICY },
    'prometheusRule.enabled: networkPolicy.ingress.from must allow the pods of Prometheus',
  ],
  [
    'a password without a host',
    password({ PGUSER: 'scanfeed' }),
    'database.passwordKey: the secret holds only the password; set settings.PGHOST',
  ],
  ['a password without a role', password({ PGHOST: 'db.example' }), 'set settings.PGUSER too'],
  [
    'a scrape timeout above the interval',
    { podMonitor: { ...ON, interval: '1m', scrapeTimeout: '1m1s' } },
    'podMonitor.scrapeTimeout: 1m1s is longer than podMonitor.interval, 1m',
  ],
  [
    'a scrape timeout of a ServiceMonitor above the interval',
    { serviceMonitor: { ...ON, scrapeTimeout: '1h' } },
    'serviceMonitor.scrapeTimeout: 1h is longer than serviceMonitor.interval, 30s',
  ],
  ['a duration of no order', { podMonitor: { interval: '30s1m' } }, '/podMonitor/interval'],
  ['an empty duration', { podMonitor: { interval: '' } }, '/podMonitor/interval'],
  ['braces around a selector', { prometheusRule: { selector: '{job="a"}' } }, '/prometheusRule/selector'],
  ['an open end of a selector', { prometheusRule: { selector: 'job="a",' } }, '/prometheusRule/selector'],
  [
    'scrapes that are too rare for the alerts',
    { podMonitor: { ...ON, interval: '2m1s' }, prometheusRule: ON },
    'podMonitor.interval: the alerts need an interval from 1s to 2m, not 2m1s',
  ],
  [
    'scrapes of a ServiceMonitor that are too rare',
    { serviceMonitor: { ...ON, interval: '5m' }, prometheusRule: ON },
    'serviceMonitor.interval: the alerts need',
  ],
  [
    'rare scrapes without a monitor of the chart',
    { prometheusRule: { ...ON, selector: 'job="a"', scrapeInterval: '5m' } },
    'prometheusRule.scrapeInterval: the alerts need',
  ],
  ['scrapes that never happen', { podMonitor: { ...ON, interval: '0s' }, prometheusRule: ON }, 'podMonitor.interval: '],
  [
    'rare evaluations',
    { podMonitor: ON, prometheusRule: { ...ON, interval: '1h' } },
    'prometheusRule.interval: the alerts',
  ],
  [
    'polls that are too rare for the alerts',
    polledEvery('571s'),
    'settings.SCANFEED_POLL_INTERVAL: 571s and the scrape interval, 30s, are together longer than prometheusRule.alerts.Stalled.threshold, 600 s',
  ],
  [
    'polls that are too rare for the lag alone',
    polledEvery('15m', { Stalled: { threshold: 3600 } }),
    'prometheusRule.alerts.LagHigh.warning, 600 s, so ScanfeedLagHigh would fire without a fault',
  ],
  [
    'polls that are rarer than deliveries must be',
    polledEvery('5m', { NoDeliveries: { enabled: true, threshold: 300 } }),
    'prometheusRule.alerts.NoDeliveries.threshold',
  ],
  [
    'a threshold below the default of the polls',
    polledEvery(undefined, { Stalled: { threshold: 30 } }),
    'settings.SCANFEED_POLL_INTERVAL: 5s and',
  ],
  [
    'polls of one feed that are too rare',
    { ...polledEvery(undefined), feeds: [{ name: 'acme' }, { name: 'globex', pollInterval: '1h' }] },
    'feeds: pollInterval of globex: 1h and',
  ],
  [
    'a grace period that is as short as the shutdown',
    { settings: { SCANFEED_SHUTDOWN_TIMEOUT: '0.5 m' } },
    'terminationGracePeriodSeconds: 30 must be longer than SCANFEED_SHUTDOWN_TIMEOUT, 0.5 m',
  ],
  [
    'a grace period below the default',
    { terminationGracePeriodSeconds: 10 },
    'terminationGracePeriodSeconds: 10 must be',
  ],
  [
    'a pause that takes the grace period',
    { lifecycle: { preStop: { sleep: { seconds: 20 } } } },
    'and the pause of lifecycle.preStop, 20 s',
  ],
  ['root', { securityContext: { runAsUser: 0 } }, 'securityContext.runAsUser: Kubernetes does not start root'],
  [
    'root of the pod',
    { securityContext: { runAsUser: null, runAsNonRoot: null }, podSecurityContext: { runAsUser: 0 } },
    'podSecurityContext.runAsUser: Kubernetes does not start root',
  ],
  [
    'an admin host that no probe reaches',
    { settings: { SCANFEED_ADMIN_HOST: '127.0.0.1' } },
    'settings.SCANFEED_ADMIN_HOST: 127.0.0.1 cannot be reached by livenessProbe',
  ],
  [
    'an admin host that Prometheus does not reach',
    { settings: { SCANFEED_ADMIN_HOST: '::1' }, mode: 'sidecar', livenessProbe: null, podMonitor: ON },
    'settings.SCANFEED_ADMIN_HOST: ::1 cannot be reached by Prometheus',
  ],
  ['runbooks by a path', { prometheusRule: { runbookUrl: 'docs/runbooks' } }, '/prometheusRule/runbookUrl'],
];

function rule(alert: string, part: string, pause?: string): object {
  const rest = pause === undefined ? {} : { for: pause };
  return expect.objectContaining({ alert, expr: expect.stringContaining(part), ...rest });
}

function ingressPath(path: string, pathType: string): object {
  const backend = { service: { name: 'invoices-scanfeed', port: { name: 'http-scanfeed' } } };
  return { path, pathType, backend };
}

/** Data of a ConfigMap with a dashboard that links to this address of the status page. */
function linksTo(url: string): unknown {
  return expect.toSatisfy((data: Readonly<Record<string, string>>) =>
    Object.values(data).every((text) => {
      const { links } = JSON.parse(text) as {
        readonly links: readonly { readonly title: string; readonly url: string }[];
      };
      return links.some((link) => link.title === 'Status page' && link.url === url);
    }),
  );
}

function having(name: string, value: string): unknown {
  return expect.arrayContaining([{ name, value }]);
}

/** Equal, and not only a part. */
function exactly(expected: object): unknown {
  return expect.toSatisfy((actual: unknown) => JSON.stringify(actual) === JSON.stringify(expected));
}

describe('the chart', () => {
  /** The output of Helm for each of RENDERED, which two tests read. */
  const outputs = new Map<object, Promise<string>>();
  const outputOf = (helm: string, values: object): Promise<string> => {
    const output = outputs.get(values) ?? runTemplate(helm, { ...REQUIRED, ...values }).then(({ stdout }) => stdout);
    outputs.set(values, output);
    return output;
  };

  test.for(RENDERED)('renders %s', async ([, values, expected], context) => {
    const manifests = parseManifests(await outputOf(requireHelm(context), values));
    expect(manifests).not.toEqual([]);
    for (const [kind, part] of Object.entries(expected)) {
      const found = manifests.filter((manifest) => manifest.kind === kind);
      if (part === null) expect(found).toEqual([]);
      else expect(found).toMatchObject([part]);
    }
    const [deployed] = podSpecs(manifests.filter(({ kind }) => kind === 'Deployment'));
    const contents: Readonly<Record<string, string>> = {
      '/etc/scanfeed/database': 'postgres://scanfeed:a@db.example/invoices',
      '/authorities/ca.crt': testCertificate('proxy.example').cert,
    };
    const readFile = (path: string) => contents[path] ?? 'key';
    const { warnings } = readSettings(environmentOf(deployed?.containers[0] as never), { readFile });
    expect(warnings).toEqual([]);
  });

  test('renders manifests that every Kubernetes version from 1.29 accepts', async (context) => {
    requireSchemas(context);
    const helm = requireHelm(context);
    const texts: string[] = [];
    for (const [, values] of RENDERED) texts.push(await outputOf(helm, values));
    expect(texts.filter((text) => text === '')).toEqual([]);
    expect(await findInvalid(texts.join('\n---\n'))).toEqual([]);
  });

  test.for(REJECTED)('rejects %s by a message that names the value', async ([, values, complaint], context) => {
    const { status, stdout, stderr } = await runTemplate(requireHelm(context), { ...REQUIRED, ...values });
    expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: '', stderr: expect.stringContaining(complaint) });
  });
});
