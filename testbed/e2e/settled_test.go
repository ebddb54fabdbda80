package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// snapshot is what a namespace holds of all addons.
type snapshot struct {
	resources   map[string]resource
	objects     map[string]metav1.Object // kind/name, of what carries an addon's label
	secrets     map[string]corev1.Secret
	settings    map[string]string // ConfigMap name → level
	deployments map[string]string // name → image when it is rolled out, else what is missing
	jobs        map[string]string // the same of Jobs that are done
	checksums   map[string]string // kind/name → checksum of the values
}

func (w *world) look() (*snapshot, error) {
	s := &snapshot{
		resources: map[string]resource{}, objects: map[string]metav1.Object{}, secrets: map[string]corev1.Secret{},
		settings: map[string]string{}, deployments: map[string]string{}, jobs: map[string]string{}, checksums: map[string]string{},
	}
	text, err := w.rest().Get().AbsPath(w.path("")).DoRaw(w.ctx)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []resource `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	for _, r := range list.Items {
		s.resources[r.Metadata.Name] = r
	}
	return s, errors.Join(w.lookAtCore(s), w.lookAtWorkloads(s))
}

var labelled = metav1.ListOptions{LabelSelector: "zaentrum.io/addon"}

func (w *world) lookAtCore(s *snapshot) error {
	core := w.client.CoreV1()
	secrets, err := core.Secrets(w.Namespace).List(w.ctx, labelled)
	if err != nil {
		return err
	}
	for _, o := range secrets.Items {
		s.objects["Secret/"+o.Name], s.secrets[o.Name] = &o.ObjectMeta, o
	}
	maps, err := core.ConfigMaps(w.Namespace).List(w.ctx, labelled)
	if err != nil {
		return err
	}
	for _, o := range maps.Items {
		s.objects["ConfigMap/"+o.Name], s.settings[o.Name] = &o.ObjectMeta, o.Data["level"]
	}
	services, err := core.Services(w.Namespace).List(w.ctx, labelled)
	if err != nil {
		return err
	}
	for _, o := range services.Items {
		s.objects["Service/"+o.Name] = &o.ObjectMeta
	}
	accounts, err := core.ServiceAccounts(w.Namespace).List(w.ctx, labelled)
	if err != nil {
		return err
	}
	for _, o := range accounts.Items {
		s.objects["ServiceAccount/"+o.Name] = &o.ObjectMeta
	}
	claims, err := core.PersistentVolumeClaims(w.Namespace).List(w.ctx, labelled)
	if err != nil {
		return err
	}
	for _, o := range claims.Items {
		s.objects["PersistentVolumeClaim/"+o.Name] = &o.ObjectMeta
	}
	return nil
}

func (w *world) lookAtWorkloads(s *snapshot) error {
	deployments, err := w.client.AppsV1().Deployments(w.Namespace).List(w.ctx, labelled)
	if err != nil {
		return err
	}
	for _, o := range deployments.Items {
		s.objects["Deployment/"+o.Name] = &o.ObjectMeta
		s.checksums["Deployment/"+o.Name] = o.Spec.Template.Annotations["zaentrum.io/values-checksum"]
		s.deployments[o.Name] = "not rolled out"
		if o.Status.ObservedGeneration == o.Generation && o.Status.UpdatedReplicas == 1 && o.Status.AvailableReplicas == 1 && o.Status.Replicas == 1 {
			s.deployments[o.Name] = o.Spec.Template.Spec.Containers[0].Image
		}
	}
	jobs, err := w.client.BatchV1().Jobs(w.Namespace).List(w.ctx, labelled)
	if err != nil {
		return err
	}
	for _, o := range jobs.Items {
		s.objects["Job/"+o.Name] = &o.ObjectMeta
		s.checksums["Job/"+o.Name] = o.Spec.Template.Annotations["zaentrum.io/values-checksum"]
		s.jobs[o.Name] = "not done"
		if o.Status.Succeeded == 1 {
			s.jobs[o.Name] = o.Spec.Template.Spec.Containers[0].Image
		}
	}
	return nil
}

// unsettled says what is not as it is asked for; empty when all is.
func (w *world) unsettled() string {
	s, err := w.look()
	if err != nil {
		return err.Error()
	}
	explained := map[string]bool{} // objects that have a reason to be there
	for _, m := range w.members {
		problem := w.wrong(m, s, explained)
		if problem == "" {
			problem = w.wrongSecrets(m, s, explained)
		}
		if problem != "" {
			return m.name + ": " + problem
		}
	}
	for name := range s.resources {
		if !slices.ContainsFunc(w.members, func(m *member) bool { return m.name == name && m.exists }) {
			return "ZaentrumAddon/" + name + " is still there"
		}
	}
	for id, o := range s.objects {
		if !explained[id] {
			return fmt.Sprintf("%s is there, labelled for %s, owned by %v, and nobody wants it", id, o.GetLabels()["zaentrum.io/addon"], o.GetOwnerReferences())
		}
	}
	return ""
}

// wrong says what is wrong with an addon's resource and with what it applied.
func (w *world) wrong(m *member, s *snapshot, explained map[string]bool) string {
	if !m.exists {
		return ""
	}
	r, ok := s.resources[m.name]
	phase := map[bool]string{true: "Planned", false: "Ready"}[m.suspended]
	switch {
	case !ok:
		return "the resource is gone"
	case r.Metadata.UID != m.uid:
		return "the resource is another one"
	case r.Status.Phase != phase || r.Status.ObservedGeneration != r.Metadata.Generation:
		return fmt.Sprintf("it is %s at generation %d of %d, not %s: %s", r.Status.Phase, r.Status.ObservedGeneration, r.Metadata.Generation, phase, r.Status.Message)
	case len(r.Metadata.Finalizers) > 0 || r.Metadata.DeletionTimestamp != nil:
		return fmt.Sprintf("it has finalizers %v", r.Metadata.Finalizers)
	case m.applied != nil && r.Status.LastAppliedChart.Version != m.applied.version:
		return fmt.Sprintf("what was applied last is %q, not %s", r.Status.LastAppliedChart.Version, m.applied.version)
	}
	for _, id := range m.objects(m.applied) {
		explained[id] = true
		o := s.objects[id]
		if o == nil || o.GetDeletionTimestamp() != nil {
			return id + " is missing"
		}
		if refs := o.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != m.uid || refs[0].Controller == nil || !*refs[0].Controller {
			return fmt.Sprintf("%s has owners %v", id, refs)
		}
	}
	if m.applied == nil {
		return ""
	}
	image := "ghcr.io/example/main:" + m.applied.version
	for what, c := range map[string]struct{ is, wants string }{
		"the Deployment's image": {s.deployments[m.name], image},
		"the Job's image":        {s.jobs[m.name+"-migrate"], image},
		"the level":              {s.settings[m.name+"-settings"], m.applied.level},
		"the Job's values":       {s.checksums["Job/"+m.name+"-migrate"], s.checksums["Deployment/"+m.name]},
	} {
		if c.is != c.wants {
			return fmt.Sprintf("%s: %s, not %s", what, c.is, c.wants)
		}
	}
	if string(s.secrets[m.name+"-env"].Data["token"]) != m.applied.token {
		return "the chart's Secret has another token"
	}
	return ""
}

// wrongSecrets says what is wrong with an addon's values Secrets.
func (w *world) wrongSecrets(m *member, s *snapshot, explained map[string]bool) string {
	for name := range m.kept {
		kept, ok := s.secrets[name]
		if !ok || kept.DeletionTimestamp != nil || kept.Labels["zaentrum.io/keep"] != "true" || len(kept.OwnerReferences) > 0 {
			return fmt.Sprintf("Secret %s is not kept: labels %v, owners %v", name, kept.Labels, kept.OwnerReferences)
		}
		explained["Secret/"+name] = true
	}
	if !m.exists {
		return ""
	}
	owners := func(name string) (*corev1.Secret, string) {
		explained["Secret/"+name] = true
		secret, ok := s.secrets[name]
		switch {
		case !ok || secret.DeletionTimestamp != nil:
			return nil, "Secret " + name + " is gone"
		case !m.kept[name] && !ownedByOnly(secret.OwnerReferences, m.uid):
			return nil, fmt.Sprintf("Secret %s has owners %v", name, secret.OwnerReferences)
		}
		return &secret, ""
	}
	if _, problem := owners(m.asked.secret); problem != "" {
		return problem
	}
	generated, problem := owners(m.generatedName())
	if problem != "" {
		return problem
	}
	for name, since := range m.former {
		former, ok := s.secrets[name]
		explained["Secret/"+name] = true
		switch {
		case !ok && time.Since(since) < 10*time.Minute:
			return "Secret " + name + " was deleted before ten minutes had passed"
		case ok && former.Annotations["zaentrum.io/unreferenced-since"] == "" && time.Since(since) > 20*time.Second:
			return "Secret " + name + " is not referenced, and that is not noted"
		}
	}
	return m.wrongValues(s, generated.Data)
}

// wrongValues compares the generated values with those that were made first and with what runs.
func (m *member) wrongValues(s *snapshot, generated map[string][]byte) string {
	paths := map[string][]string{"1.0.0": {"key"}, "2.0.0": {"key", "second"}}
	for _, path := range paths[m.asked.version] {
		if len(generated[path]) == 0 {
			return "no value was generated for " + path
		}
	}
	for path, was := range m.generated {
		if string(generated[path]) != was {
			return "the generated value of " + path + " is not the first one"
		}
	}
	if m.applied == nil {
		return ""
	}
	for _, path := range paths[m.applied.version] {
		if !bytes.Equal(s.secrets[m.name+"-env"].Data[path], generated[path]) {
			return "what runs has another value of " + path + " than the one that was generated"
		}
	}
	return ""
}

func ownedByOnly(refs []metav1.OwnerReference, uid types.UID) bool {
	return len(refs) == 1 && refs[0].UID == uid
}
