package guard

// Rules is the table of guardrails, in report order. Ids are permanent: people and scripts refer to them.
func Rules() []Rule {
	var (
		chart    = []string{ChartKind}
		services = []string{kindService}
		claims   = []string{kindClaim}
		pods     = []string{kindDeployment, kindJob}
	)
	return []Rule{
		// The chart.
		{
			ID: "chart-api-version", Title: "the chart is of apiVersion v2", Level: Refuse, Kinds: chart, chart: chartAPIVersion,
			Why: "Charts of Helm 2 declare dependencies in another file and have no type, so what they say of themselves cannot be relied on.",
			Fix: "Set apiVersion: v2 in Chart.yaml.",
		},
		{
			ID: "chart-type", Title: "the chart is an application", Level: Refuse, Kinds: chart, chart: chartType,
			Why: "A library chart renders nothing that could run.",
			Fix: "Set type: application in Chart.yaml, or leave type out.",
		},
		{
			ID: "chart-addon", Title: "the chart says that it is an addon", Level: Refuse, Kinds: chart, chart: chartAddon,
			Why: "Only a chart written for the platform can be expected to keep its rules.",
			Fix: `Annotate Chart.yaml with zaentrum.io/addon: "true", in quotes.`,
		},
		{
			ID: "chart-primary", Title: "the chart names its primary Service", Level: Refuse, Kinds: chart, chart: chartPrimary,
			Why: "The platform registers the addon from the manifest that this Service serves.",
			Fix: "Annotate Chart.yaml with zaentrum.io/primary: NAME.",
		},
		{
			ID: "no-crds", Title: "the chart brings no CRDs", Level: Refuse, Kinds: chart, chart: chartCRDs,
			Why: "Custom resource definitions are the whole cluster's, not an addon's.",
			Fix: "Remove the crds directory, also from bundled subcharts.",
		},
		{
			ID: "primary-service", Title: "the chart renders its primary Service", Level: Refuse, Kinds: chart, chart: primaryService,
			Why: "Without the Service that zaentrum.io/primary names, the addon can never be registered.",
			Fix: "Render a Service of exactly that name, with every set of values.",
		},

		// Objects of every kind.
		{
			ID: "allowed-kind", Title: "only kinds an addon may have", Level: Refuse, object: allowedKind,
			Why: "Everything else reaches beyond the addon: rights, cluster-wide objects, entry points.",
			Fix: "Render only ServiceAccount, Secret, ConfigMap, PersistentVolumeClaim and Service (v1), Deployment (apps/v1) and Job (batch/v1). The addon's UI is reached through the portal proxy.",
		},
		{
			ID: "valid-name", Title: "a fixed, valid name", Level: Refuse, Ours: true, object: validName,
			Why: "An object is found again by its name; the cluster refuses invalid ones in the middle of an apply.",
			Fix: "Name it with lower-case letters, digits and - (a workload with at most 63 characters), and without generateName.",
		},
		{
			ID: "own-namespace", Title: "the addon's own namespace", Level: Refuse, object: ownNamespace,
			Why: "An addon lives in the platform's namespace and nowhere else.",
			Fix: "Leave metadata.namespace out, or set it to .Release.Namespace.",
		},
		{
			ID: "unique-object", Title: "each object once", Level: Refuse, object: uniqueObject,
			Why: "Of two objects of one kind and name only one would stay, and which one is chance.",
			Fix: "Rename one of them, or render it once.",
		},
		{
			ID: "reserved-name", Title: "no name of the platform's", Level: Refuse, object: reservedName,
			Why: "Names starting with zaentrum-addon- hold the values of addons.",
			Fix: "Choose a name that starts differently.",
		},
		{
			ID: "others-name", Title: "no name that others look for", Level: Refuse, Ours: true, object: othersName,
			Kinds: []string{kindServiceAccount, kindSecret, kindConfigMap, kindClaim, kindService},
			Why:   "The cluster, its tools and the platform look for objects of certain names and labels, and take what they find there for their own.",
			Fix:   "Name it after the addon, and take labels off that make it the record of a Helm release.",
		},
		{
			ID: "no-owner-references", Title: "no owner of the chart's choice", Level: Refuse, object: noOwnerReferences,
			Why: "The addon's resource owns what the chart renders, so that removing the addon removes it.",
			Fix: "Remove metadata.ownerReferences.",
		},
		{
			ID: "no-finalizers", Title: "no finalizers", Level: Refuse, Ours: true, object: noFinalizers,
			Why: "A finalizer that nobody takes off blocks the removal of the addon for ever.",
			Fix: "Remove metadata.finalizers, also from pod templates.",
		},
		{
			ID: "no-other-controllers", Title: "no instructions to other controllers", Level: Refuse, Ours: true, object: noInstructions,
			Why: "Injectors, replicators and their kind act on annotations and labels after the guardrails have looked, with rights that the addon does not have.",
			Fix: "Remove the annotation or label; \"false\", which switches such a controller off, is fine.",
		},
		{
			ID: "no-service-account-annotation", Title: "no token asked for by annotation", Level: Refuse, object: noServiceAccountAnnotation,
			Why: "The annotations kubernetes.io/service-account.name and .uid make the cluster write an account's token into a Secret.",
			Fix: "Remove the annotation; a pod gets the token of its own account with automountServiceAccountToken: true.",
		},
		{
			ID: "no-server-metadata", Title: "no metadata that the cluster keeps", Level: Refuse, Ours: true, object: noServerMetadata,
			Why: "uid, resourceVersion, managedFields and deletion times belong to one object in one cluster; with them an apply fails.",
			Fix: "Remove them from metadata; they are left over from an exported object.",
		},
		{
			ID: "wrong-type", Title: "values of the right type", Level: Refuse, Ours: true, object: wrongType,
			Why: "What has the wrong type cannot be checked, and the cluster refuses it or reads it as something else.",
			Fix: "Quote strings that look like numbers or booleans, in labels and annotations too; do not quote numbers and booleans.",
		},
		{
			ID: "unknown-field", Title: "only known fields", Level: Refuse, Ours: true, object: unknownField,
			Why: "A field that these rules do not know could do anything, and a misspelt one does nothing.",
			Fix: "Correct the field's name; if it is newer than this version of the platform, leave it out.",
		},
		{
			ID: "unique-list-entry", Title: "no list entry twice", Level: Refuse, Ours: true, object: uniqueListEntry,
			Kinds: []string{kindServiceAccount, kindService, kindDeployment, kindJob},
			Why:   "Entries such as env, ports and volumes are told apart by their names; two of one name are refused or merged oddly.",
			Fix:   "Render each entry once.",
		},
		{
			ID: "valid-object", Title: "what the cluster accepts", Level: Refuse, Ours: true, object: validObject,
			Why: "The cluster does not take the object as it is: a field is missing, has a value that is none, or does not go with another one.",
			Fix: "Correct the field that is named; the plan asks the cluster for the rest in a dry run.",
		},
		{
			ID: "server-set-field", Title: "no fields that the cluster sets", Level: Warn, Ours: true, object: serverSetField,
			Why: "The cluster overwrites or ignores what a chart says there.",
			Fix: "Remove status, generation, creationTimestamp and selfLink; they are left over from an exported object.",
		},
		{
			ID: "reserved-label", Title: "no marks of the operator's", Level: Warn, Ours: true, object: reservedLabel,
			Why: "The operator sets labels under zaentrum.io/ and its annotations itself, over what the chart says.",
			Fix: "Leave them out of the templates.",
		},

		// Secrets, Services, claims, service accounts.
		{
			ID: "secret-type", Title: "Secrets of harmless types", Level: Refuse, Kinds: []string{kindSecret}, object: secretType,
			Why: "Some types make the cluster act, above all kubernetes.io/service-account-token, which fills in a token.",
			Fix: "Use Opaque, kubernetes.io/tls, kubernetes.io/dockerconfigjson, kubernetes.io/basic-auth or kubernetes.io/ssh-auth.",
		},
		{
			ID: "service-type", Title: "Services inside the cluster", Level: Refuse, Kinds: services, object: serviceType,
			Why: "Other types open a way into the cluster past the portal, or lead out of it.",
			Fix: "Set type: ClusterIP, or leave type out.",
		},
		{
			ID: "no-external-address", Title: "no external addresses on Services", Level: Refuse, Kinds: services, object: noExternalAddress,
			Why: "External addresses can take over traffic that is meant for others.",
			Fix: "Remove externalIPs, externalName, loadBalancerIP, loadBalancerSourceRanges and loadBalancerClass.",
		},
		{
			ID: "no-cluster-address", Title: "an address that the cluster chooses", Level: Refuse, Ours: true, Kinds: services, object: noClusterAddress,
			Why: "An address that is taken fails in the middle of an apply, and one that others rely on, such as that of a Service which is gone, takes over their traffic.",
			Fix: "Remove clusterIP and clusterIPs, or set clusterIP: None for a headless Service.",
		},
		{
			ID: "primary-port", Title: "the primary Service listens on port 80", Level: Refuse, Kinds: services, object: primaryPort,
			Why: "The platform reaches the addon at http://<primary>.",
			Fix: "Give the Service that zaentrum.io/primary names a TCP port 80; targetPort may be any.",
		},
		{
			ID: "service-selects-own-pods", Title: "Services select the chart's pods", Level: Warn, Ours: true, Kinds: services, object: serviceSelectsOwnPods,
			Why: "A selector that fits no pod of the chart leads nowhere, or to somebody else's pods.",
			Fix: "Use the labels of the pod template as the selector.",
		},
		{
			ID: "no-existing-volume", Title: "claims of new volumes", Level: Refuse, Kinds: claims, object: noExistingVolume,
			Why: "Binding or cloning an existing volume reads what belongs to others.",
			Fix: "Remove volumeName, dataSource and dataSourceRef. For the cluster's default class leave storageClassName out: an empty one binds an existing volume.",
		},
		{
			ID: "claim-selector", Title: "claims that select no volume", Level: Refuse, Ours: true, Kinds: claims, object: claimSelector,
			Why: "A selector binds the claim to a volume that somebody else prepared.",
			Fix: "Leave the selector out, so that a new volume is made.",
		},
		{
			ID: "service-account-secrets", Title: "service accounts with the chart's Secrets", Level: Refuse, Ours: true, Kinds: []string{kindServiceAccount}, object: serviceAccountSecrets,
			Why: "Pods pull images with the Secrets that their service account names, whoever they belong to.",
			Fix: "Name only Secrets that the chart renders, and those of zaentrum.imagePullSecrets.",
		},

		// Pods: what they share with their node.
		{
			ID: "no-host-network", Title: "no network of the node", Level: Refuse, Kinds: pods, object: noHostNetwork,
			Why: "A pod in its node's network listens there and passes network policies by.",
			Fix: "Remove hostNetwork.",
		},
		{
			ID: "no-host-pid", Title: "no processes of the node", Level: Refuse, Kinds: pods, object: noHostPID,
			Why: "A pod that sees its node's processes can read their secrets.",
			Fix: "Remove hostPID; shareProcessNamespace shares processes inside the pod.",
		},
		{
			ID: "no-host-ipc", Title: "no shared memory of the node", Level: Refuse, Kinds: pods, object: noHostIPC,
			Why: "A pod in its node's IPC namespace reads the memory that others share.",
			Fix: "Remove hostIPC.",
		},
		{
			ID: "no-host-port", Title: "no ports of the node", Level: Refuse, Kinds: pods, object: noHostPort,
			Why: "A port of the node is open to whoever reaches the node, past the portal.",
			Fix: "Remove hostPort and use a Service.",
		},
		{
			ID: "no-node-name", Title: "no node by name", Level: Refuse, Kinds: pods, object: noNodeName,
			Why: "A pod that names its node comes next to whatever runs there, the control plane or a database; nodeName also passes the scheduler by, and with it taints.",
			Fix: "Remove nodeName and what chooses by kubernetes.io/hostname or metadata.name; choose nodes by a label that says what they are for, such as example.org/gpu.",
		},
		{
			ID: "no-control-plane", Title: "no control-plane nodes", Level: Refuse, Kinds: pods, object: noControlPlane,
			Why: "Next to the control plane, a pod is one step from the whole cluster.",
			Fix: "Remove the nodeSelector, affinity or toleration for control-plane nodes.",
		},
		{
			ID: "own-namespace-affinity", Title: "affinity to pods of the namespace", Level: Refuse, Ours: true, Kinds: pods, object: ownNamespaceAffinity,
			Why: "With pods of other namespaces a pod comes next to whom it likes, the control plane's own for one, and an anti-affinity keeps them off their nodes.",
			Fix: "Remove namespaces and namespaceSelector: without them a term means the pods of the addon's own namespace.",
		},
		{
			ID: "own-anti-affinity", Title: "apart from the addon's own pods only", Level: Refuse, Ours: true, Kinds: pods, object: ownAntiAffinity,
			Why: "A required anti-affinity counts both ways: pods that its selector fits are kept off the nodes, or the zones, where the addon runs.",
			Fix: "Select the addon's own pods by a label that only they have, such as app: <addon>, or make the anti-affinity a preferred one.",
		},
		{
			ID: "no-subdomain", Title: "no names below a Service", Level: Refuse, Ours: true, Kinds: pods, object: noSubdomain,
			Why: "With a headless Service, subdomain makes a name of two parts, and every pod of the namespace finds it before the name of that kind that it means: postgres.database, or the issuer's.",
			Fix: "Remove subdomain; reach the pods through a Service. hostname alone is fine.",
		},
		{
			ID: "no-job-selector", Title: "Jobs that select their own pods only", Level: Refuse, Ours: true, Kinds: []string{kindJob}, object: noJobSelector,
			Why: "With a selector of its own a Job takes over pods of others, and deletes them.",
			Fix: "Remove selector and manualSelector; the cluster makes the selector.",
		},
		{
			ID: "ends-in-time", Title: "pods that end within a day", Level: Refuse, Ours: true, Kinds: pods, object: noEndlessEnd,
			Why: "Until its grace period is over a pod goes on, also when the addon was removed.",
			Fix: "Lower terminationGracePeriodSeconds, or the sleep of the lifecycle hook, to at most 86400.",
		},
		{
			ID: "no-tolerate-all", Title: "no toleration of every taint", Level: Refuse, Kinds: pods, object: noTolerateAll,
			Why: "A toleration without a key matches every taint, that of control-plane nodes included.",
			Fix: "Give the toleration the key of the taint it is for.",
		},
		{
			ID: "no-priority-class", Title: "no priority over others", Level: Refuse, Kinds: pods, object: noPriorityClass,
			Why: "Pods of a higher priority push the platform's own off their nodes.",
			Fix: "Remove priorityClassName and priority.",
		},
		{
			ID: "no-scheduling-group", Title: "no scheduling group", Level: Refuse, Ours: true, Kinds: pods, object: noSchedulingGroup,
			Why: "The group is an object that an addon cannot have, so it is somebody else's.",
			Fix: "Remove schedulingGroup.",
		},
		{
			ID: "no-device-claims", Title: "no claims of devices", Level: Refuse, Ours: true, Kinds: pods, object: noDeviceClaims,
			Why: "The claim, or its template, is an object that an addon cannot have, so it is somebody else's.",
			Fix: "Remove resourceClaims; ask for a device with resources.limits.",
		},

		// Pods: as whom their containers run.
		{
			ID: "no-ephemeral-containers", Title: "no ephemeral containers", Level: Refuse, Ours: true, Kinds: pods, object: noEphemeralContainers,
			Why: "They are for debugging a running pod and cannot be part of a template.",
			Fix: "Remove ephemeralContainers, or make it an ordinary container.",
		},
		{
			ID: "no-privileged", Title: "no privileged containers", Level: Refuse, Kinds: pods, object: noPrivileged,
			Why: "A privileged container is root on its node.",
			Fix: "Remove privileged.",
		},
		{
			ID: "no-privilege-escalation", Title: "no gain of privileges", Level: Refuse, Kinds: pods, object: noPrivilegeEscalation,
			Why: "With it a process becomes more than it was started as.",
			Fix: "Remove allowPrivilegeEscalation, or set it to false.",
		},
		{
			ID: "no-added-capabilities", Title: "no added capabilities", Level: Refuse, Kinds: pods, object: noAddedCapabilities,
			Why: "Each capability is a part of root's power.",
			Fix: "Remove capabilities.add; listen on ports above 1023.",
		},
		{
			ID: "no-root-user", Title: "not as root", Level: Refuse, Kinds: pods, object: noRootUser,
			Why: "Root in a container is one mistake away from root on the node.",
			Fix: "Set runAsUser to another number, or remove it and build the image to run as a non-root user.",
		},
		{
			ID: "run-as-non-root", Title: "non-root is not switched off", Level: Refuse, Kinds: pods, object: runAsNonRoot,
			Why: "runAsNonRoot: false lets an image start as root.",
			Fix: "Remove runAsNonRoot, or set it to true.",
		},
		{
			ID: "default-proc-mount", Title: "the usual /proc", Level: Refuse, Kinds: pods, object: defaultProcMount,
			Why: "An unmasked /proc shows and changes what is the kernel's.",
			Fix: "Remove procMount.",
		},
		{
			ID: "no-selinux-options", Title: "no SELinux identity of the chart's choice", Level: Refuse, Kinds: pods, object: noSELinuxOptions,
			Why: "A chosen type, user or role can be one that is confined less.",
			Fix: "Remove type, user and role from seLinuxOptions; level may stay.",
		},
		{
			ID: "no-sysctls", Title: "no kernel settings", Level: Refuse, Kinds: pods, object: noSysctls,
			Why: "Kernel settings can reach beyond the pod.",
			Fix: "Remove sysctls.",
		},
		{
			ID: "no-unconfined-apparmor", Title: "AppArmor is not switched off", Level: Refuse, Kinds: pods, object: noUnconfinedAppArmor,
			Why: "An unconfined container does what the profile is there to prevent.",
			Fix: "Remove the profile or its annotation, or use RuntimeDefault.",
		},
		{
			ID: "no-unconfined-seccomp", Title: "seccomp is not switched off", Level: Refuse, Ours: true, Kinds: pods, object: noUnconfinedSeccomp,
			Why: "An unconfined container may make every system call.",
			Fix: "Remove the profile or its annotation, or use RuntimeDefault.",
		},
		{
			ID: "no-host-process", Title: "no host process", Level: Refuse, Kinds: pods, object: noHostProcess,
			Why: "On Windows, such a container is a process of its node.",
			Fix: "Remove windowsOptions.hostProcess.",
		},
		{
			ID: "linux-pods", Title: "pods of Linux", Level: Refuse, Ours: true, Kinds: pods, object: linuxPods,
			Why: "The safe defaults that the operator sets are those of Linux; the cluster accepts them on no other system, and these rules know none.",
			Fix: "Set os.name to linux, or leave os out; remove windowsOptions, and selectors for nodes of another system.",
		},
		{
			ID: "no-probe-host", Title: "probes and hooks call their own pod", Level: Refuse, Ours: true, Kinds: pods, object: noProbeHost,
			Why: "The node makes these calls; with a host they reach what the pod itself may not.",
			Fix: "Remove host from httpGet and tcpSocket; set a Host header with httpHeaders.",
		},

		// Pods: volumes and what they refer to.
		{
			ID: "no-host-path", Title: "no directory of the node", Level: Refuse, Kinds: pods, object: noHostPath,
			Why: "A hostPath volume reads and writes the node's files.",
			Fix: "Use a claim the chart renders, or zaentrum.media.claimName.",
		},
		{
			ID: "allowed-volume", Title: "only volumes of the addon's own", Level: Refuse, Kinds: pods, object: allowedVolume,
			Why: "Other volumes mount what belongs to the node, the network or others.",
			Fix: "Use configMap, secret, emptyDir, projected (of configMap, secret, downwardAPI, serviceAccountToken and clusterTrustBundle), downwardAPI or persistentVolumeClaim.",
		},
		{
			ID: "one-volume-source", Title: "one source in a volume", Level: Refuse, Ours: true, Kinds: pods, object: oneVolumeSource,
			Why: "A volume is of one kind; the cluster refuses one that is of two.",
			Fix: "Split it into two volumes; several sources go into one projected volume.",
		},
		{
			ID: "own-claims", Title: "the chart's claims, or the media claim", Level: Refuse, Kinds: pods, object: ownClaims,
			Why: "Another claim holds the data of the platform or of another addon.",
			Fix: "Use a claim the chart renders, or zaentrum.media.claimName.",
		},
		{
			ID: "own-secrets", Title: "the chart's Secrets, or those handed over", Level: Refuse, Kinds: pods, object: ownSecrets,
			Why: "Another Secret holds credentials of the platform or of another addon. A reference that is optional is one, too.",
			Fix: "Render the Secret from inputs, or use zaentrum.events.tlsSecret and zaentrum.imagePullSecrets.",
		},
		{
			ID: "own-config-maps", Title: "the chart's ConfigMaps", Level: Refuse, Kinds: pods, object: ownConfigMaps,
			Why: "Another ConfigMap is the platform's or another addon's, and changes without notice.",
			Fix: "Render the ConfigMap; take platform facts from .Values.zaentrum.",
		},
		{
			ID: "own-service-account", Title: "the chart's service account, or the default one", Level: Refuse, Kinds: pods, object: ownServiceAccount,
			Why: "Another account carries the rights of the platform or of another addon.",
			Fix: "Render the ServiceAccount, or leave serviceAccountName out.",
		},
		{
			ID: "pull-secret-in-pod", Title: "pull secrets are for pulling", Level: Warn, Ours: true, Kinds: pods, object: pullSecretInPod,
			Why: "A pod that reads the platform's registry credentials can pass them on.",
			Fix: "Name zaentrum.imagePullSecrets only under imagePullSecrets.",
		},

		// What an admin should know before installing.
		{
			ID: "pinned-digest", Title: "images by digest", Level: Warn, Ours: true, Notice: true, Kinds: pods, object: pinnedDigest,
			Why: "A tag can be given to another image at any time, and the next pod runs it unseen; without a tag it is latest, which is meant to move.",
			Fix: "Name the image with @sha256:… behind a tag of one version.",
		},
		{
			ID: "service-account-token", Title: "no token of a service account", Level: Warn, Ours: true, Notice: true, Kinds: pods, object: serviceAccountToken,
			Why: "With the token a pod calls the cluster's API with whatever rights its account was given.",
			Fix: "Leave automountServiceAccountToken and projected tokens out unless the addon calls the API.",
		},
		{
			ID: "host-aliases", Title: "no names of the chart's own", Level: Warn, Ours: true, Notice: true, Kinds: pods, object: hostAliases,
			Why: "The pods resolve these names as the chart says, not as everybody else does.",
			Fix: "Alias only the issuer's host, to zaentrum.issuerHostAliasIP.",
		},
		{
			ID: "media-writable", Title: "media is only read", Level: Warn, Ours: true, Notice: true, Kinds: pods, object: mediaWritable,
			Why: "The addon can change and delete the platform's media.",
			Fix: "Mount it with readOnly: true unless the addon writes files for ingest.",
		},
		{
			ID: "platform-secret", Title: "no credentials of the platform", Level: Warn, Ours: true, Notice: true, Kinds: pods, object: platformSecret,
			Why: "The addon reads and writes the platform's events as the platform does.",
			Fix: "Mount zaentrum.events.tlsSecret only where events are used.",
		},
		{
			ID: "workload-identity", Title: "no identity in a cloud", Level: Warn, Ours: true, Notice: true, Kinds: []string{kindServiceAccount, kindDeployment, kindJob}, object: workloadIdentity,
			Why: "The cloud gives the pods rights that nothing in the cluster shows.",
			Fix: "Remove the marks of the cloud, such as eks.amazonaws.com, iam.gke.io and azure.workload.identity.",
		},
		{
			ID: "runtime-class", Title: "the usual runtime", Level: Warn, Ours: true, Notice: true, Kinds: pods, object: runtimeClass,
			Why: "Another runtime isolates otherwise, and where the cluster has none of that name the pods never start.",
			Fix: "Remove runtimeClassName.",
		},
		{
			ID: "scheduler-name", Title: "the usual scheduler", Level: Warn, Ours: true, Notice: true, Kinds: pods, object: schedulerName,
			Why: "Another scheduler places pods as it likes, and where the cluster has none of that name they stay pending.",
			Fix: "Remove schedulerName.",
		},
		{
			ID: "root-group", Title: "not in root's group", Level: Warn, Ours: true, Notice: true, Kinds: pods, object: rootGroup,
			Why: "Files of root are often open to its group.",
			Fix: "Use another number for runAsGroup, fsGroup and supplementalGroups, or leave them out.",
		},
		{
			ID: "resource-requests", Title: "containers say what they need", Level: Warn, Ours: true, Notice: true, Kinds: pods, object: resourceRequests,
			Why: "Without requests a pod is put where there is no room for it, and is the first to go when memory is short.",
			Fix: "Set resources.requests for cpu and memory.",
		},
		{
			ID: "primary-readiness", Title: "the primary tells when it is ready", Level: Warn, Ours: true, Notice: true, Kinds: []string{kindDeployment}, object: primaryReadiness,
			Why: "Without a probe the addon counts as ready, and is registered, before it answers.",
			Fix: "Give the container a readinessProbe.",
		},
		{
			ID: "primary-reachable", Title: "the primary Service leads to pods", Level: Warn, Ours: true, Notice: true, Kinds: services, object: primaryReachable,
			Why: "A headless Service does not map port 80 to the container's, and one without a selector leads nowhere.",
			Fix: "Leave clusterIP out, and select the primary's pods by their labels.",
		},

		// The cluster, as it was observed.
		{
			ID: "no-foreign-traffic", Title: "pods that take nobody's traffic", Level: Refuse, Ours: true, Kinds: pods, neighbours: noForeignTraffic,
			Why: "Pods whose labels fit the selector of somebody else's Service get a part of its traffic.",
			Fix: "Give the pods labels of the addon's own, such as app: <addon>.",
		},
		{
			ID: "no-foreign-pods", Title: "Services that select nobody else's pods", Level: Refuse, Ours: true, Kinds: services, neighbours: noForeignPods,
			Why: "Under the addon's name others would be reached, and what is sent to the addon goes to them.",
			Fix: "Select the labels of the chart's own pods, and one at least that only they have.",
		},
		{
			ID: "no-foreign-repelled", Title: "pods that keep nobody else away", Level: Refuse, Ours: true, Kinds: pods, neighbours: noForeignRepelled,
			Why: "A required anti-affinity counts both ways: pods that its selector fits are kept off the nodes, or the zones, where the addon runs.",
			Fix: "Select a label that only the addon's pods have, such as app: <addon>, or make the anti-affinity a preferred one.",
		},
		{
			ID: "no-awaited-name", Title: "no name that others wait for", Level: Refuse, Ours: true, neighbours: noAwaitedName,
			Kinds: []string{kindServiceAccount, kindSecret, kindConfigMap, kindClaim},
			Why:   "A Deployment or Job of somebody else names an object that is not there, and would take the chart's for it.",
			Fix:   "Rename the object in the chart.",
		},
		{
			ID: "ownership", Title: "nothing that belongs to others", Level: Refuse, observed: true,
			Why: "An object of that kind and name exists and is not controlled by this addon: it is the platform's, another addon's or made by hand.",
			Fix: "Rename the object in the chart, or remove the existing one if nothing needs it.",
		},
	}
}
