package apply_test

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failing is a cluster whose applies fail.
type failing struct {
	client.Client
	err error
}

func (f failing) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return f.err
}
