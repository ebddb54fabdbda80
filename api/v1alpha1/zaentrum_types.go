package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Zaentrum is the platform. Another controller owns it; zae reads the fields declared here and keeps
// every other one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=zaentrums
type Zaentrum struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec ZaentrumSpec `json:"spec,omitempty"`

	// Status belongs to the platform's own controller and is not read.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *runtime.RawExtension `json:"status,omitempty"`
}

// ZaentrumList is a list of Zaentrum.
//
// +kubebuilder:object:root=true
type ZaentrumList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Zaentrum `json:"items"`
}

// ZaentrumSpec is the part of the platform's specification that addons learn about.
type ZaentrumSpec struct {
	// Hostname is the platform's public hostname; zaentrum.localhost when empty.
	//
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// PartOf is the value of app.kubernetes.io/part-of; the namespace when empty.
	//
	// +optional
	PartOf string `json:"partOf,omitempty"`

	// ImagePullSecrets are pull secret names.
	//
	// +optional
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`

	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Identity ZaentrumIdentity `json:"identity,omitempty"`

	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Network ZaentrumNetwork `json:"network,omitempty"`

	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	EventStreaming ZaentrumEventStreaming `json:"eventStreaming,omitempty"`
}

// Modes of a platform part.
const (
	ModeBundled  = "bundled"
	ModeExternal = "external"
)

// ZaentrumIdentity says who issues the platform's tokens.
type ZaentrumIdentity struct {
	// Mode is bundled, the default, or external.
	//
	// +optional
	Mode string `json:"mode,omitempty"`
	// +optional
	Issuer string `json:"issuer,omitempty"`
	// IssuerScheme is the scheme of the bundled issuer; http when empty.
	//
	// +optional
	IssuerScheme string `json:"issuerScheme,omitempty"`
}

// ZaentrumNetwork is the platform's network.
type ZaentrumNetwork struct {
	// +optional
	IssuerHostAliasIP string `json:"issuerHostAliasIP,omitempty"`
}

// ZaentrumEventStreaming is the platform's event broker.
type ZaentrumEventStreaming struct {
	// Mode is bundled, the default, or external.
	//
	// +optional
	Mode string `json:"mode,omitempty"`
	// Bootstrap is the address of an external broker.
	//
	// +optional
	Bootstrap string `json:"bootstrap,omitempty"`
	// TopicPrefix is the tenant prefix of every topic; stube. when empty.
	//
	// +optional
	TopicPrefix string `json:"topicPrefix,omitempty"`
	// CertSecret is the Secret with the client certificate for an external broker.
	//
	// +optional
	CertSecret string `json:"certSecret,omitempty"`
}
