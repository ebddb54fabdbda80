package v1alpha1

// Kinds of this group.
const (
	KindZaentrumAddon = "ZaentrumAddon"
	KindZaentrum      = "Zaentrum"
)

// FieldManager is the server-side apply field manager of every object an addon owns (contract §1).
const FieldManager = "zaentrum-addon"

// Labels the operator sets on every object it applies (contract §3).
const (
	// LabelAddon names the addon an object, one of its pods, or a values object belongs to.
	LabelAddon = "zaentrum.io/addon"
	// LabelComponent names the Deployment a Deployment or its pods are.
	LabelComponent = "zaentrum.io/component"
	// LabelKeep with the value "true" marks a values Secret that is never touched.
	LabelKeep = "zaentrum.io/keep"

	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelPartOf    = "app.kubernetes.io/part-of"

	// ManagedBy is the value of LabelManagedBy on everything the operator applies.
	ManagedBy = "zaentrum-operator"
)

// Annotations on objects.
const (
	// AnnotationKeepValues with the value "true" on a ZaentrumAddon keeps its values Secrets and
	// generated values when it is deleted.
	AnnotationKeepValues = "zaentrum.io/keep-values"
	// AnnotationValuesChecksum on pod templates is the SHA-256 of the merged values.
	AnnotationValuesChecksum = "zaentrum.io/values-checksum"
	// AnnotationApplied on an applied object is the digest of what was applied, without Secret data.
	AnnotationApplied = "zaentrum.io/applied"
	// AnnotationRun on an applied Job is a digest of all that makes it run again when it changes.
	AnnotationRun = "zaentrum.io/run"
	// AnnotationUnreferencedSince on a values Secret is the moment, RFC 3339, from which nothing
	// referenced it.
	AnnotationUnreferencedSince = "zaentrum.io/unreferenced-since"
	// AnnotationTraceparent on a ZaentrumAddon is the trace that its spec was last changed in, as in a traceparent
	// header, and AnnotationTracedGeneration the generation that this made. Without the latter every generation is
	// taken to be of that trace.
	AnnotationTraceparent      = "zaentrum.io/traceparent"
	AnnotationTracedGeneration = "zaentrum.io/traced-generation"
	// AnnotationRequest on a ZaentrumAddon names the request with an idempotency key that last wrote it, and the
	// generation that this made: <request>.<generation>.
	AnnotationRequest = "zaentrum.io/request"
)

// Annotations in Chart.yaml (contract §1).
const (
	ChartAnnotationAddon       = "zaentrum.io/addon"
	ChartAnnotationPrimary     = "zaentrum.io/primary"
	ChartAnnotationTitle       = "zaentrum.io/title"
	ChartAnnotationDescription = "zaentrum.io/description"
	ChartAnnotationIcon        = "zaentrum.io/icon"
)

// FinalizerValues is the finalizer that lets values Secrets outlive their addon (contract §2).
const FinalizerValues = "zaentrum.io/addon-values"

const (
	// ReservedPrefix is the start of the names of values objects; charts may not render it.
	ReservedPrefix = "zaentrum-addon-"
	// PlatformKey is the top-level values key that only the operator sets.
	PlatformKey = "zaentrum"
	// MaxNameLength is the longest name of an addon (contract §1).
	MaxNameLength = 40
)

// ValuesObjectPrefix is the start of the names of the values objects that belong to an addon.
func ValuesObjectPrefix(addon string) string { return ReservedPrefix + addon + "-" }

// ValuesSecretPrefix is the start of the names of the values Secrets that portal-api creates.
func ValuesSecretPrefix(addon string) string { return ValuesObjectPrefix(addon) + "values-" }

// GeneratedSecretName is the name of the Secret with an addon's generated values.
func GeneratedSecretName(addon string) string { return ValuesObjectPrefix(addon) + "generated" }
