package v1alpha1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ZaentrumAddon asks for one addon chart in the platform's namespace. Its name is the addon's name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=zaddon
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Chart",type=string,JSONPath=`.spec.chart.ref`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.plan.chart.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ZaentrumAddon struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ZaentrumAddonSpec   `json:"spec"`
	Status ZaentrumAddonStatus `json:"status,omitempty"`
}

// Traceparent is the trace that the resource's spec was last changed in, as in a traceparent header; empty when that is
// not known. Whoever else changed it since wrote another generation.
func (a *ZaentrumAddon) Traceparent() string {
	if g := a.Annotations[AnnotationTracedGeneration]; g != "" && g != strconv.FormatInt(a.Generation, 10) {
		return ""
	}
	return a.Annotations[AnnotationTraceparent]
}

// ZaentrumAddonList is a list of ZaentrumAddon.
//
// +kubebuilder:object:root=true
type ZaentrumAddonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ZaentrumAddon `json:"items"`
}

// ZaentrumAddonSpec is what an admin asks for.
type ZaentrumAddonSpec struct {
	// Chart says which chart to install.
	Chart ChartSource `json:"chart"`

	// Values are the non-secret values: a JSON object.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`

	// ValuesFrom are values from Secrets or ConfigMaps of the addon, applied in order.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`

	// Suspend true plans only: fetch, render, validate and report the plan; apply and prune nothing.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ChartSource names a chart.
//
// +kubebuilder:validation:XValidation:rule="!self.ref.startsWith('oci://') || (has(self.version) && self.version != \"\")",message="version is required for an oci:// chart"
// +kubebuilder:validation:XValidation:rule="!self.ref.startsWith('oci://') || !self.ref.substring(6).contains('@')",message="ref takes no digest: use digest"
// +kubebuilder:validation:XValidation:rule="!self.ref.startsWith('oci://') || !self.ref.substring(self.ref.lastIndexOf('/')).contains(':')",message="ref takes no tag: use version"
type ChartSource struct {
	// Ref is oci://registry/path/chart, without a tag or digest, or an https:// link to a chart archive.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(oci|https)://[^\s]+$`
	Ref string `json:"ref"`

	// Version is the tag, required for an oci:// chart. An https archive is one version and ignores it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9_][A-Za-z0-9._+-]*)?$`
	Version string `json:"version,omitempty"`

	// Digest is sha256:… and, when set, must match the fetched archive.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^(sha256:[a-f0-9]{64})?$`
	Digest string `json:"digest,omitempty"`
}

// AppliedChart is a chart that was applied. Unlike in a ChartSource, Digest is always the archive's.
type AppliedChart struct {
	Ref string `json:"ref"`
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	Digest string `json:"digest,omitempty"`
}

// ValuesSourceKind is the kind of object a ValuesSource reads.
//
// +kubebuilder:validation:Enum=Secret;ConfigMap
type ValuesSourceKind string

// The kinds of object that values are read from.
const (
	ValuesFromSecret    ValuesSourceKind = "Secret"
	ValuesFromConfigMap ValuesSourceKind = "ConfigMap"
)

// DefaultValuesKey is the key a ValuesSource reads when it names none.
const DefaultValuesKey = "values.yaml"

// ValuesSource reads values from one key of a Secret or ConfigMap that belongs to the addon: named
// zaentrum-addon-<addon>-… and labelled zaentrum.io/addon: <addon>. Anything else is refused unread.
type ValuesSource struct {
	Kind ValuesSourceKind `json:"kind"`

	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// ValuesKey is the key to read, values.yaml by default: a whole YAML or JSON values document unless
	// TargetPath is set.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ValuesKey string `json:"valuesKey,omitempty"`

	// TargetPath sets this dotted path to the key's raw string instead.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	TargetPath string `json:"targetPath,omitempty"`

	// Optional tolerates a missing object or key.
	//
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Key is the key that s reads.
func (s ValuesSource) Key() string {
	if s.ValuesKey == "" {
		return DefaultValuesKey
	}
	return s.ValuesKey
}

// Phase is where an addon is in its life (contract §2). It is empty before the first reconcile.
type Phase string

// The phases of an addon.
const (
	PhasePlanned    Phase = "Planned"
	PhasePlanFailed Phase = "PlanFailed"
	PhaseInstalling Phase = "Installing"
	PhaseReady      Phase = "Ready"
	PhaseDegraded   Phase = "Degraded"
	PhaseFailed     Phase = "Failed"
)

// Condition types of an addon.
const (
	ConditionPlanned = "Planned"
	ConditionReady   = "Ready"
)

// ZaentrumAddonStatus is the plan and the progress.
type ZaentrumAddonStatus struct {
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Message is one human line.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// ObservedGeneration is the generation the status was written for. A plan is current when it equals
	// metadata.generation.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastAppliedChart is what actually runs.
	//
	// +optional
	LastAppliedChart *AppliedChart `json:"lastAppliedChart,omitempty"`

	// Reviewed is the content that was planned last while the resource was suspended: where it is set, somebody
	// reads plans before they are applied, and content that is published in its place under the same version
	// waits for a plan of its own. It stays when a later plan cannot be made.
	//
	// +optional
	Reviewed *AppliedChart `json:"reviewed,omitempty"`

	// +optional
	Plan *Plan `json:"plan,omitempty"`

	// Components are the applied Deployments.
	//
	// +optional
	// +listType=atomic
	Components []Component `json:"components,omitempty"`

	// Jobs are the last runs of the applied Jobs, by name. A Job that has run and that somebody deletes stays
	// among them, and is not run again until it changes.
	//
	// +optional
	// +listType=atomic
	Jobs []JobRun `json:"jobs,omitempty"`

	// ValuesSecrets are the addon's values Secrets, by name: those it reads, those that nothing reads any more and that are
	// still there, those kept from an addon of the same name before it, and the generated one. Never what is in them.
	//
	// +optional
	// +listType=atomic
	ValuesSecrets []ValuesSecret `json:"valuesSecrets,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ValuesSecret is a values Secret of an addon, without its data.
type ValuesSecret struct {
	Name string `json:"name"`
	// Keys are the keys it has, sorted; each is the dotted path of an input, or a document's name.
	//
	// +optional
	// +listType=atomic
	Keys []string `json:"keys,omitempty"`
	// CreatedAt is when it was made.
	CreatedAt metav1.Time `json:"createdAt"`
	// Kept tells that it outlives the addon.
	//
	// +optional
	Kept bool `json:"kept,omitempty"`
	// Generated tells that it holds the generated values.
	//
	// +optional
	Generated bool `json:"generated,omitempty"`
}

// Plan says what installing the addon as asked for would do, and what stands in the way.
type Plan struct {
	// +optional
	Chart PlanChart `json:"chart,omitempty"`

	// ValuesSchema is the chart's values.schema.json as a string; empty when it has none.
	//
	// +optional
	ValuesSchema string `json:"valuesSchema,omitempty"`

	// ValuesErrors are schema and render errors, such as a missing required input.
	//
	// +optional
	// +listType=atomic
	ValuesErrors []string `json:"valuesErrors,omitempty"`

	// Violations are guardrail refusals, such as "Deployment/example-worker: hostPath volume not allowed".
	//
	// +optional
	// +listType=atomic
	Violations []string `json:"violations,omitempty"`

	// Findings are what the guardrails found, refusals and warnings, in the order of Violations and Warnings, with
	// the id of their rule. What the cluster does not accept is not among them: no guardrail judged it.
	//
	// +optional
	// +listType=atomic
	Findings []Finding `json:"findings,omitempty"`

	// Objects are all rendered objects, in apply order.
	//
	// +optional
	// +listType=atomic
	Objects []ObjectRef `json:"objects,omitempty"`

	// Workloads are the rendered Deployments and Jobs.
	//
	// +optional
	// +listType=atomic
	Workloads []Workload `json:"workloads,omitempty"`

	// Changes are against what was last applied.
	//
	// +optional
	Changes Changes `json:"changes,omitempty"`

	// Effects say in words what installing would set off beyond the changes themselves: Jobs that run again and
	// why, Deployments whose pods roll, claims that go with their data, values that are generated.
	//
	// +optional
	// +listType=atomic
	Effects []string `json:"effects,omitempty"`

	// Warnings are what an admin should know and what forbids nothing, such as a field that differs each time
	// the chart is rendered.
	//
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`

	// Inputs tell where the value of each input of ValuesSchema comes from, in document order.
	//
	// +optional
	// +listType=atomic
	Inputs []PlanInput `json:"inputs,omitempty"`
}

// Blocked tells whether the plan has violations or values errors, either of which forbids installing.
func (p *Plan) Blocked() bool {
	return p != nil && (len(p.Violations) > 0 || len(p.ValuesErrors) > 0)
}

// Finding is one place where a guardrail is broken.
type Finding struct {
	// ID is the rule's. It never changes.
	ID    string       `json:"id"`
	Level FindingLevel `json:"level"`

	// Object is where the rule is broken; the chart itself is of kind Chart and has no name.
	Object ObjectRef `json:"object"`

	// Path is the field, such as spec.template.spec.volumes[1]; empty for the object as a whole.
	//
	// +optional
	Path string `json:"path,omitempty"`

	// Title is what must hold, in a few words.
	Title string `json:"title"`
}

// FindingLevel is what a finding means for the plan.
//
// +kubebuilder:validation:Enum=refuse;warn
type FindingLevel string

// The levels of findings.
const (
	// FindingRefuses is a violation: nothing of the chart is applied.
	FindingRefuses FindingLevel = "refuse"
	// FindingWarns forbids nothing.
	FindingWarns FindingLevel = "warn"
)

// PlanInput is where the value of an input comes from.
type PlanInput struct {
	// Path is the dotted path of the input.
	Path  string     `json:"path"`
	State InputState `json:"state"`
}

// InputState is where the value of an input comes from.
//
// +kubebuilder:validation:Enum=set;generated;chart;default;missing;unset
type InputState string

// The states of an input.
const (
	// InputSet is an input that spec.values or spec.valuesFrom gives.
	InputSet InputState = "set"
	// InputGenerated is an input that nobody gives and the operator generated, or will.
	InputGenerated InputState = "generated"
	// InputFromChart is an input that nobody gives and the chart's values.yaml has.
	InputFromChart InputState = "chart"
	// InputDefault is an input without a value, for which the schema names a default. The default is a
	// suggestion: it is not among the values.
	InputDefault InputState = "default"
	// InputMissing is an input without a value that the schema requires.
	InputMissing InputState = "missing"
	// InputUnset is an input without a value that may go without.
	InputUnset InputState = "unset"
)

// PlanChart is the fetched chart.
type PlanChart struct {
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
	// +optional
	Description string `json:"description,omitempty"`

	// Digest is sha256:… of the chart archive's bytes.
	//
	// +optional
	Digest string `json:"digest,omitempty"`

	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Requested is what the resource asked for when the plan was made. What is applied later is what was
	// planned then, also when the tag has moved since.
	//
	// +optional
	Requested *AppliedChart `json:"requested,omitempty"`
}

// ObjectRef names an object in the addon's namespace.
type ObjectRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// String is Kind/name.
func (r ObjectRef) String() string { return r.Kind + "/" + r.Name }

// Workload is a Deployment or Job with its images and container ports, each in template order and once.
type Workload struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// +optional
	// +listType=atomic
	Images []string `json:"images,omitempty"`
	// +optional
	// +listType=atomic
	Ports []int32 `json:"ports,omitempty"`
}

// Changes are what the plan would change against what was last applied.
type Changes struct {
	// +optional
	// +listType=atomic
	Added []ObjectRef `json:"added,omitempty"`
	// +optional
	// +listType=atomic
	Removed []ObjectRef `json:"removed,omitempty"`
	// +optional
	// +listType=atomic
	Images []ImageChange `json:"images,omitempty"`

	// Modified are the objects that exist and would be written to. A Deployment among them rolls when its pods
	// change, and a Job runs again.
	//
	// +optional
	// +listType=atomic
	Modified []ModifiedObject `json:"modified,omitempty"`
}

// ModifiedObject is an object that exists and would be written to.
type ModifiedObject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`

	// Fields are the paths of the fields that would change, sorted, such as
	// spec.template.spec.containers[worker].image; never their values. For a Secret they are names of keys.
	//
	// +optional
	// +listType=atomic
	Fields []string `json:"fields,omitempty"`
}

// Ref names the object.
func (m ModifiedObject) Ref() ObjectRef { return ObjectRef{Kind: m.Kind, Name: m.Name} }

// ImageChange is a container whose image would be replaced.
type ImageChange struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Container string `json:"container"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// Component is one applied Deployment.
type Component struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Ready   int32  `json:"ready"`
	Desired int32  `json:"desired"`

	// Reason says why the component is not ready; empty when it is.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
}

// JobRun is the last run of one applied Job.
type JobRun struct {
	Name  string   `json:"name"`
	State JobState `json:"state"`

	// Reason says why the Job failed, or what keeps it from running; empty when there is nothing to say.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// StartTime is when the Job was created.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// FinishTime is when it was complete or had failed.
	//
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`

	// Deleted tells that somebody deleted the Job after it had finished.
	//
	// +optional
	Deleted bool `json:"deleted,omitempty"`

	// Run is a digest of what the Job ran with. It runs again when that changes.
	//
	// +optional
	Run string `json:"run,omitempty"`
}

// JobState is how far a Job is.
//
// +kubebuilder:validation:Enum=Waiting;Running;Suspended;Complete;Failed
type JobState string

// The states of a Job.
const (
	// JobWaiting is a Job that is created once the one of before is gone, its pods included.
	JobWaiting JobState = "Waiting"
	// JobRunning is a Job that has not finished, whether its pods are at work yet or not.
	JobRunning JobState = "Running"
	// JobSuspended is a Job that does not run because its own spec says so.
	JobSuspended JobState = "Suspended"
	// JobComplete is a Job that did its work.
	JobComplete JobState = "Complete"
	// JobFailed is a Job that gave up.
	JobFailed JobState = "Failed"
)
