package values

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

// Defaults of the platform resource (decisions §1).
const (
	defaultNamespace    = "zaentrum"
	defaultHostname     = "zaentrum.localhost"
	defaultIssuerScheme = "http"
	defaultTopicPrefix  = "stube."
	bundledBrokers      = "kafka:9092"
	issuerPath          = "/auth/realms/zaentrum"
	mediaClaim          = "media"
)

// Platform is the block under the key zaentrum: the platform's facts, every key of the contract always
// there. It fails when the resource leaves a fact open that has no default; the fault names the field.
func Platform(z *v1alpha1.Zaentrum) (map[string]any, error) {
	if z == nil {
		return nil, fault.New(fault.Invalid, "there is no Zaentrum resource to take the platform's values from")
	}
	if z.Namespace == "" {
		return nil, underivable(z, "metadata.namespace is empty", "set metadata.namespace to the platform's namespace")
	}
	hostname := or(z.Spec.Hostname, defaultHostname)
	issuer, err := issuer(z, hostname)
	if err != nil {
		return nil, err
	}
	events, err := events(z)
	if err != nil {
		return nil, err
	}
	pullSecrets := make([]any, len(z.Spec.ImagePullSecrets))
	for i, name := range z.Spec.ImagePullSecrets {
		pullSecrets[i] = name
	}
	return map[string]any{
		"namespace":         z.Namespace,
		"hostname":          hostname,
		"issuer":            issuer,
		"issuerHostAliasIP": z.Spec.Network.IssuerHostAliasIP,
		"imagePullSecrets":  pullSecrets,
		"partOf":            or(z.Spec.PartOf, z.Namespace) + "-addons",
		"events":            events,
		"media":             map[string]any{"claimName": mediaClaim},
	}, nil
}

// DefaultPlatform is the platform that offline commands assume: namespace zaentrum and every default.
func DefaultPlatform() *v1alpha1.Zaentrum {
	return &v1alpha1.Zaentrum{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindZaentrum},
		ObjectMeta: metav1.ObjectMeta{Name: defaultNamespace, Namespace: defaultNamespace},
	}
}

func issuer(z *v1alpha1.Zaentrum, hostname string) (string, error) {
	id := z.Spec.Identity
	switch or(id.Mode, v1alpha1.ModeBundled) {
	case v1alpha1.ModeBundled, v1alpha1.ModeExternal:
	default:
		return "", unknownMode(z, "spec.identity.mode")
	}
	if id.Issuer != "" {
		return id.Issuer, nil
	}
	if id.Mode == v1alpha1.ModeExternal {
		return "", underivable(z, "spec.identity.issuer is empty while spec.identity.mode is external",
			"set spec.identity.issuer to the URL of the OIDC issuer, or spec.identity.mode to bundled")
	}
	return or(id.IssuerScheme, defaultIssuerScheme) + "://" + hostname + issuerPath, nil
}

func events(z *v1alpha1.Zaentrum) (map[string]any, error) {
	es := z.Spec.EventStreaming
	brokers, tlsSecret := bundledBrokers, ""
	switch or(es.Mode, v1alpha1.ModeBundled) {
	case v1alpha1.ModeBundled:
	case v1alpha1.ModeExternal:
		if es.Bootstrap == "" {
			return nil, underivable(z, "spec.eventStreaming.bootstrap is empty while spec.eventStreaming.mode is external",
				"set spec.eventStreaming.bootstrap to the brokers' address, or spec.eventStreaming.mode to bundled")
		}
		brokers, tlsSecret = es.Bootstrap, es.CertSecret
	default:
		return nil, unknownMode(z, "spec.eventStreaming.mode")
	}
	return map[string]any{
		"brokers":     brokers,
		"topicPrefix": or(es.TopicPrefix, defaultTopicPrefix),
		"tlsSecret":   tlsSecret,
	}, nil
}

func unknownMode(z *v1alpha1.Zaentrum, field string) error {
	return underivable(z, field+" is neither bundled nor external", "set "+field+" to bundled or external")
}

func underivable(z *v1alpha1.Zaentrum, what, hint string) error {
	return fault.New(fault.Invalid, "%s/%s: the platform's values cannot be derived: %s", v1alpha1.KindZaentrum, z.Name, what).
		WithHint("%s", hint)
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
