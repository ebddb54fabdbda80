package v1alpha1

//go:generate go tool controller-gen object paths=./... crd:crdVersions=v1 output:crd:artifacts:config=../../deploy/crds
