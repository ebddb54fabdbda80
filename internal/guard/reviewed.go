package guard

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plain is the verdict on fields that need no rule: whatever they say stays inside the addon's own pods
// and objects, or the API server judges it.
const plain = "plain"

// verdicts are what was decided about the fields of a type: the id of the rule that looks at them, or
// plain, to the fields, separated by spaces.
type verdicts map[string]string

// reviewed are the types of the Kubernetes API whose every field was looked at, and what was decided. A
// field that a newer API adds is in no list: it is refused as unknown, and a test fails until somebody
// has decided.
func reviewed() map[reflect.Type]map[string]string {
	out := map[reflect.Type]map[string]string{}
	for _, r := range []struct {
		of       any
		verdicts verdicts
	}{
		{metav1.ObjectMeta{}, verdicts{
			"valid-name":                    "name generateName",
			"own-namespace":                 "namespace",
			"no-owner-references":           "ownerReferences",
			"no-finalizers":                 "finalizers",
			"no-service-account-annotation": "annotations",
			"reserved-label":                "labels",
			"no-server-metadata":            "uid resourceVersion deletionTimestamp deletionGracePeriodSeconds managedFields",
			"server-set-field":              "selfLink generation creationTimestamp",
		}},
		{corev1.ServiceAccount{}, verdicts{
			"service-account-secrets": "secrets imagePullSecrets",
			plain:                     "apiVersion kind metadata automountServiceAccountToken",
		}},
		{corev1.Secret{}, verdicts{
			"secret-type": "type",
			plain:         "apiVersion kind metadata immutable data stringData",
		}},
		{corev1.ConfigMap{}, verdicts{
			plain: "apiVersion kind metadata immutable data binaryData",
		}},
		{corev1.PersistentVolumeClaimSpec{}, verdicts{
			"no-existing-volume": "volumeName dataSource dataSourceRef storageClassName",
			"claim-selector":     "selector",
			plain:                "accessModes resources volumeMode volumeAttributesClassName",
		}},
		{corev1.ServiceSpec{}, verdicts{
			"service-type":             "type",
			"no-external-address":      "externalIPs externalName loadBalancerIP loadBalancerSourceRanges loadBalancerClass",
			"primary-port":             "ports",
			"service-selects-own-pods": "selector",
			"no-cluster-address":       "clusterIP clusterIPs",
			"valid-object":             "externalTrafficPolicy healthCheckNodePort allocateLoadBalancerNodePorts", // of other types
			// The rest shapes a cluster-internal address.
			plain: "sessionAffinity publishNotReadyAddresses " +
				"sessionAffinityConfig ipFamilies ipFamilyPolicy internalTrafficPolicy trafficDistribution",
		}},
		{appsv1.DeploymentSpec{}, verdicts{
			plain: "replicas selector template strategy minReadySeconds revisionHistoryLimit paused progressDeadlineSeconds",
		}},
		{batchv1.JobSpec{}, verdicts{
			"no-device-claims":     "scheduling",
			"no-job-selector":      "selector manualSelector",
			"no-other-controllers": "managedBy",
			plain: "parallelism completions activeDeadlineSeconds podFailurePolicy successPolicy backoffLimit backoffLimitPerIndex " +
				"maxFailedIndexes template ttlSecondsAfterFinished completionMode suspend podReplacementPolicy",
		}},
		{corev1.PodTemplateSpec{}, verdicts{plain: "metadata spec"}},
		{corev1.PodSpec{}, verdicts{
			"allowed-volume":          "volumes",
			"no-privileged":           "initContainers containers", // and every other rule about containers
			"no-ephemeral-containers": "ephemeralContainers",
			"no-control-plane":        "nodeSelector affinity tolerations", // and no-node-name and linux-pods
			"own-service-account":     "serviceAccountName serviceAccount",
			"no-node-name":            "nodeName",
			"no-host-network":         "hostNetwork",
			"no-host-pid":             "hostPID",
			"no-host-ipc":             "hostIPC",
			"run-as-non-root":         "securityContext", // and every other rule about security contexts
			"own-secrets":             "imagePullSecrets",
			"no-priority-class":       "priorityClassName priority",
			"no-device-claims":        "resourceClaims",
			"no-scheduling-group":     "schedulingGroup",
			"no-subdomain":            "subdomain",
			"linux-pods":              "os",
			"service-account-token":   "automountServiceAccountToken",
			"host-aliases":            "hostAliases",
			"runtime-class":           "runtimeClassName",
			"scheduler-name":          "schedulerName",
			"resource-requests":       "resources",
			// hostUsers: false isolates more than the default. An overhead is the cluster's; a wrong one leaves the
			// pod pending.
			plain: "restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy " +
				"shareProcessNamespace hostname dnsConfig readinessGates " +
				"enableServiceLinks preemptionPolicy overhead topologySpreadConstraints setHostnameAsFQDN hostUsers " +
				"schedulingGates hostnameOverride evictionResponders",
		}},
		{corev1.PodSecurityContext{}, verdicts{
			"no-selinux-options":     "seLinuxOptions",
			"no-host-process":        "windowsOptions",
			"no-root-user":           "runAsUser",
			"run-as-non-root":        "runAsNonRoot",
			"no-sysctls":             "sysctls",
			"no-unconfined-seccomp":  "seccompProfile",
			"no-unconfined-apparmor": "appArmorProfile",
			"root-group":             "runAsGroup supplementalGroups fsGroup",
			plain:                    "supplementalGroupsPolicy fsGroupChangePolicy seLinuxChangePolicy",
		}},
		{corev1.SecurityContext{}, verdicts{
			"no-added-capabilities":   "capabilities",
			"no-privileged":           "privileged",
			"no-selinux-options":      "seLinuxOptions",
			"no-host-process":         "windowsOptions",
			"no-root-user":            "runAsUser",
			"run-as-non-root":         "runAsNonRoot",
			"no-privilege-escalation": "allowPrivilegeEscalation",
			"default-proc-mount":      "procMount",
			"no-unconfined-seccomp":   "seccompProfile",
			"no-unconfined-apparmor":  "appArmorProfile",
			"root-group":              "runAsGroup",
			plain:                     "readOnlyRootFilesystem",
		}},
		{corev1.Capabilities{}, verdicts{"no-added-capabilities": "add", plain: "drop"}},
		{corev1.SELinuxOptions{}, verdicts{"no-selinux-options": "user role type", plain: "level"}},
		{corev1.SeccompProfile{}, verdicts{"no-unconfined-seccomp": "type", plain: "localhostProfile"}},
		{corev1.AppArmorProfile{}, verdicts{"no-unconfined-apparmor": "type", plain: "localhostProfile"}},
		{corev1.WindowsSecurityContextOptions{}, verdicts{
			"no-host-process": "hostProcess",
			"linux-pods":      "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName",
		}},
		{corev1.Container{}, containerVerdicts("")},
		{corev1.EphemeralContainer{}, containerVerdicts("targetContainerName")},
		{corev1.ContainerPort{}, verdicts{"no-host-port": "hostPort hostIP", plain: "name containerPort protocol"}},
		{corev1.Lifecycle{}, verdicts{"no-probe-host": "postStart preStop", plain: "stopSignal"}},
		{corev1.LifecycleHandler{}, verdicts{"no-probe-host": "httpGet tcpSocket", plain: "exec sleep"}},
		{corev1.Probe{}, verdicts{
			"no-probe-host": "httpGet tcpSocket",
			plain: "exec grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold " +
				"terminationGracePeriodSeconds",
		}},
		{corev1.HTTPGetAction{}, verdicts{"no-probe-host": "host", plain: "path port scheme httpHeaders protocol"}},
		{corev1.TCPSocketAction{}, verdicts{"no-probe-host": "host", plain: "port"}},
		{corev1.GRPCAction{}, verdicts{plain: "port service mode"}},
		{corev1.EnvVar{}, verdicts{"own-secrets": "valueFrom", plain: "name value"}},
		{corev1.EnvVarSource{}, verdicts{
			"own-secrets":     "secretKeyRef",
			"own-config-maps": "configMapKeyRef",
			plain:             "fieldRef resourceFieldRef fileKeyRef",
		}},
		{corev1.EnvFromSource{}, verdicts{"own-secrets": "secretRef", "own-config-maps": "configMapRef", plain: "prefix"}},
		// A mount names a volume of its pod, and the volumes are judged.
		{corev1.VolumeMount{}, verdicts{
			plain: "name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr bindMountOptions",
		}},
		{corev1.Volume{}, verdicts{
			"no-host-path":    "hostPath",
			"own-secrets":     "secret projected",
			"own-config-maps": "configMap",
			"own-claims":      "persistentVolumeClaim",
			"allowed-volume": "gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs rbd flexVolume cinder cephfs flocker " +
				"fc azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos csi ephemeral image",
			plain: "name emptyDir downwardAPI",
		}},
		{corev1.VolumeProjection{}, verdicts{
			"own-secrets":           "secret",
			"own-config-maps":       "configMap",
			"allowed-volume":        "podCertificate",
			"service-account-token": "serviceAccountToken", // a token of the pod's own service account
			plain:                   "downwardAPI clusterTrustBundle",
		}},
		{corev1.Affinity{}, verdicts{"no-control-plane": "nodeAffinity", "own-namespace-affinity": "podAffinity podAntiAffinity"}},
		{corev1.PodAffinityTerm{}, verdicts{
			"own-namespace-affinity": "namespaces namespaceSelector",
			"own-anti-affinity":      "labelSelector", // the keys beside it make it fit fewer
			plain:                    "topologyKey matchLabelKeys mismatchLabelKeys",
		}},
		{corev1.NodeAffinity{}, verdicts{
			"no-control-plane": "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution",
		}},
		{corev1.NodeSelectorTerm{}, verdicts{"no-control-plane": "matchExpressions matchFields"}},
		{corev1.Toleration{}, verdicts{"no-control-plane": "key operator value", plain: "effect tolerationSeconds"}},
	} {
		fields := map[string]string{}
		for verdict, names := range r.verdicts {
			for name := range strings.FieldsSeq(names) {
				fields[name] = verdict
			}
		}
		out[reflect.TypeOf(r.of)] = fields
	}
	return out
}

func containerVerdicts(more string) verdicts {
	return verdicts{
		"no-host-port":      "ports",
		"own-secrets":       "env envFrom",
		"no-probe-host":     "livenessProbe readinessProbe startupProbe lifecycle",
		"no-privileged":     "securityContext", // and every other rule about security contexts
		"pinned-digest":     "image",
		"resource-requests": "resources",
		plain: "name command args workingDir resizePolicy restartPolicy restartPolicyRules volumeMounts volumeDevices " +
			"terminationMessagePath terminationMessagePolicy imagePullPolicy stdin stdinOnce tty " + more,
	}
}
