package guard

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// limits are what the API server asks of single fields, beyond their type. Of each type the fields, separated by
// semicolons: the name, ! when it must be there, + when it may be left out but not be empty, and what it must be: one
// of several words, a number from..to, or a form by its name. Of a list that is asked of each item.
//
// A field that is not in here is not looked at: the cluster has the last word, in its dry run. What is in here has
// been so for many versions of Kubernetes, and is no stricter than the newest one.
func limits() map[reflect.Type]map[string]limit {
	out := map[reflect.Type]map[string]limit{}
	for _, l := range []struct {
		of     any
		fields string
	}{
		{metav1.ObjectMeta{}, "labels labels; annotations annotations"},
		{metav1.LabelSelector{}, "matchLabels labels"},
		{metav1.LabelSelectorRequirement{}, "key! key; operator! In|NotIn|Exists|DoesNotExist; values label-value"},

		{corev1.Secret{}, "data data-keys; stringData data-keys"},
		{corev1.ConfigMap{}, "data data-keys; binaryData data-keys"},
		{corev1.PersistentVolumeClaim{}, "spec!"},
		{corev1.PersistentVolumeClaimSpec{}, "accessModes!+ ReadWriteOnce|ReadOnlyMany|ReadWriteMany|ReadWriteOncePod; " +
			"storageClassName name; volumeMode+ Filesystem|Block; volumeAttributesClassName name"},
		{corev1.Service{}, "spec!"},
		{corev1.ServiceSpec{}, "selector labels; sessionAffinity None|ClientIP; internalTrafficPolicy+ Cluster|Local; " +
			"trafficDistribution+ PreferClose|PreferSameZone|PreferSameNode; " +
			"ipFamilies+ IPv4|IPv6; ipFamilyPolicy+ SingleStack|PreferDualStack|RequireDualStack"},
		{corev1.ServicePort{}, "name label; port! 1..65535; targetPort target-port; protocol TCP|UDP|SCTP; appProtocol+ key"},

		{appsv1.Deployment{}, "spec!"},
		{appsv1.DeploymentSpec{}, "selector!; template!; replicas 0..; minReadySeconds 0..; revisionHistoryLimit 0..; progressDeadlineSeconds 0.."},
		{appsv1.DeploymentStrategy{}, "type Recreate|RollingUpdate"},
		{appsv1.RollingUpdateDeployment{}, "maxSurge count; maxUnavailable count"},
		{batchv1.Job{}, "spec!"},
		{batchv1.JobSpec{}, "template!; parallelism 0..; completions 0..; activeDeadlineSeconds 0..; backoffLimit 0..; backoffLimitPerIndex 0..; " +
			"maxFailedIndexes 0..; completionMode+ NonIndexed|Indexed; podReplacementPolicy+ TerminatingOrFailed|Failed; managedBy+"},
		{batchv1.PodFailurePolicyRule{}, "action! FailJob|FailIndex|Ignore|Count"},
		{batchv1.PodFailurePolicyOnExitCodesRequirement{}, "operator! In|NotIn; values!"},
		{batchv1.PodFailurePolicyOnPodConditionsPattern{}, "type! key; status True|False|Unknown"},
		{batchv1.SuccessPolicy{}, "rules!"},
		{batchv1.SuccessPolicyRule{}, "succeededCount 0.."},

		{corev1.PodTemplateSpec{}, "spec!"},
		{corev1.PodSpec{}, "containers!; restartPolicy Always|OnFailure|Never; dnsPolicy ClusterFirst|ClusterFirstWithHostNet|Default|None; " +
			"activeDeadlineSeconds 1..2147483647; nodeSelector labels; hostname label; " +
			"hostnameOverride+ name; runtimeClassName+ name; preemptionPolicy+ PreemptLowerPriority|Never"},
		{corev1.PodOS{}, "name!"},
		{corev1.PodReadinessGate{}, "conditionType! key"},
		{corev1.PodSchedulingGate{}, "name! key"},
		{corev1.HostAlias{}, "ip! address; hostnames+ name"},
		{corev1.PodDNSConfig{}, "nameservers+ address; searches+ search"},
		{corev1.PodDNSConfigOption{}, "name!"},
		{corev1.PodSecurityContext{}, "runAsUser 0..2147483647; runAsGroup 0..2147483647; fsGroup 0..2147483647; supplementalGroups 0..2147483647; " +
			"fsGroupChangePolicy+ OnRootMismatch|Always; supplementalGroupsPolicy+ Merge|Strict; seLinuxChangePolicy+ MountOption|Recursive"},
		{corev1.SecurityContext{}, "runAsUser 0..2147483647; runAsGroup 0..2147483647; procMount+"},
		{corev1.SeccompProfile{}, "localhostProfile inner-path"},
		{corev1.NodeSelector{}, "nodeSelectorTerms!"},
		{corev1.NodeSelectorRequirement{}, "key! key; operator! In|NotIn|Exists|DoesNotExist|Gt|Lt; values label-value"},
		{corev1.PreferredSchedulingTerm{}, "weight! 1..100"},
		{corev1.WeightedPodAffinityTerm{}, "weight! 1..100; podAffinityTerm!"},
		{corev1.PodAffinityTerm{}, "topologyKey! key; namespaces+ label"},
		{corev1.Toleration{}, "key key; operator Exists|Equal|Lt|Gt; value label-value; effect NoSchedule|PreferNoSchedule|NoExecute"},
		{corev1.TopologySpreadConstraint{}, "maxSkew! 1..; topologyKey!; whenUnsatisfiable! DoNotSchedule|ScheduleAnyway; minDomains 1..; " +
			"nodeAffinityPolicy+ Honor|Ignore; nodeTaintsPolicy+ Honor|Ignore"},

		{corev1.Container{}, "name! label; image!; imagePullPolicy Always|IfNotPresent|Never; restartPolicy+ Always|OnFailure|Never; " +
			"terminationMessagePolicy File|FallbackToLogsOnError"},
		{corev1.ContainerPort{}, "containerPort! 1..65535; name port-name; protocol TCP|UDP|SCTP"},
		{corev1.ContainerResizePolicy{}, "resourceName! cpu|memory; restartPolicy! NotRequired|RestartContainer"},
		{corev1.EnvVar{}, "name! env-name"},
		{corev1.EnvFromSource{}, "prefix env-name"},
		{corev1.ObjectFieldSelector{}, "fieldPath!; apiVersion v1"},
		{corev1.ResourceFieldSelector{}, "resource!"},
		{corev1.SecretKeySelector{}, "key! data-key"},
		{corev1.ConfigMapKeySelector{}, "key! data-key"},
		{corev1.VolumeMount{}, "name!; mountPath!; subPath inner-path; subPathExpr inner-path; mountPropagation+ None|HostToContainer; " +
			"recursiveReadOnly+ Disabled|IfPossible|Enabled"},
		{corev1.VolumeDevice{}, "name!; devicePath! straight-path"},
		{corev1.Probe{}, "initialDelaySeconds 0..; timeoutSeconds 0..; periodSeconds 0..; successThreshold 0..; failureThreshold 0..; " +
			"terminationGracePeriodSeconds 1.."},
		{corev1.ExecAction{}, "command!"},
		{corev1.HTTPGetAction{}, "port! port; scheme HTTP|HTTPS"},
		{corev1.HTTPHeader{}, "name! header"},
		{corev1.TCPSocketAction{}, "port! port"},
		{corev1.GRPCAction{}, "port! 1..65535"},
		{corev1.SleepAction{}, "seconds 0.."},

		{corev1.Volume{}, "name! label"},
		{corev1.EmptyDirVolumeSource{}, "sizeLimit amount"},
		{corev1.SecretVolumeSource{}, "defaultMode 0..511"},
		{corev1.ConfigMapVolumeSource{}, "defaultMode 0..511"},
		{corev1.ProjectedVolumeSource{}, "defaultMode 0..511"},
		{corev1.DownwardAPIVolumeSource{}, "defaultMode 0..511"},
		{corev1.KeyToPath{}, "key!; path! file-path; mode 0..511"},
		{corev1.DownwardAPIVolumeFile{}, "path! file-path; mode 0..511"},
		{corev1.ServiceAccountTokenProjection{}, "path! file-path; expirationSeconds 600..4294967296"},
		{corev1.ClusterTrustBundleProjection{}, "path! file-path; name bundle"},
	} {
		fields := map[string]limit{}
		for field := range strings.SplitSeq(l.fields, ";") {
			name, want, _ := strings.Cut(strings.TrimSpace(field), " ")
			name, filled := strings.CutSuffix(name, "+")
			name, required := strings.CutSuffix(name, "!")
			fields[name] = limit{required: required, filled: filled, form: formOf(want)}
		}
		out[reflect.TypeOf(l.of)] = fields
	}
	return out
}

// limit is what must hold for a field.
type limit struct {
	required bool
	filled   bool // an empty text is none
	form     form // nil asks nothing
}

// judge asks it of the field that stands here.
func (l limit) judge(field value, madeUp func(string) bool) []hit {
	switch {
	case l.required && field.absent():
		return []hit{field.hit("missing")}
	case field.raw == nil:
		return nil
	}
	places := []value{field}
	if _, list := field.raw.([]any); list {
		places = field.items()
	}
	var hits []hit
	for _, v := range places {
		switch {
		case l.filled && v.is(""):
			hits = append(hits, v.hit("empty: give it a value, or leave it out"))
		case l.form != nil && (madeUp == nil || !madeUp(v.text())):
			hits = append(hits, l.form(v)...)
		}
	}
	return hits
}

// absent tells whether the API server reads this as a field that is not there.
func (v value) absent() bool {
	switch t := v.raw.(type) {
	case nil:
		return true
	case string:
		return t == ""
	case []any:
		return len(t) == 0
	}
	return false
}

// form finds what is wrong with what stands at a place. What has the wrong type is not its business.
type form func(v value) []hit

// formOf is the form that a word of the table stands for.
func formOf(want string) form {
	if want == "" {
		return nil
	}
	if known, ok := forms[want]; ok {
		return known
	}
	if from, to, ok := strings.Cut(want, ".."); ok {
		return between(number(from, math.MinInt64), number(to, math.MaxInt64))
	}
	return oneOf(strings.Split(want, "|"))
}

func number(text string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return otherwise
}

func between(least, most int64) form {
	what := fmt.Sprintf("must be %d to %d", least, most)
	switch {
	case most == math.MaxInt64 && least == 0:
		what = "must not be negative"
	case most == math.MaxInt64:
		what = fmt.Sprintf("must be at least %d", least)
	}
	return func(v value) []hit {
		if n, ok := v.raw.(int64); ok && (n < least || n > most) {
			return []hit{v.hit("%s", what)}
		}
		return nil
	}
}

func oneOf(words []string) form {
	what := "must be " + words[0]
	if last := len(words) - 1; last > 0 {
		what = "must be " + strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return func(v value) []hit {
		if s := v.text(); s != "" && !slices.Contains(words, s) {
			return []hit{v.hit("%s", what)}
		}
		return nil
	}
}
