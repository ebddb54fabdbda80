// Package v1alpha1 holds the zaentrum.io/v1alpha1 API types: ZaentrumAddon, which asks for one addon
// chart and reports its plan and progress, and the part of Zaentrum, the platform, that zae reads.
//
// It is vocabulary: names, types and constants, no behaviour beyond what the types themselves need.
//
// +kubebuilder:object:generate=true
// +groupName=zaentrum.io
package v1alpha1
