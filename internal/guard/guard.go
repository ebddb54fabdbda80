// Package guard is the guardrails: the rules that a chart and the objects it renders must keep before
// anything of it is applied, as one table of values.
//
// Rules are decided on the raw trees, the very ones that are applied, never on typed copies: a field that
// is unknown here is refused, not dropped. What is safe is listed, and the rest is refused.
//
// Nothing in here reads a cluster, a clock, a file or the environment, and no finding quotes a value of a
// chart: only kinds, names and paths, cut to length and without control characters.
package guard

import (
	"slices"

	"zaentrum.io/zae/internal/manifest"
)

// Facts are what the rules are decided on.
type Facts struct {
	Addon     string // the addon's name
	Namespace string // the platform's namespace, which is the addon's
	Chart     ChartFacts
	Objects   manifest.Set // as rendered, in the chart's order
	// NotRendered tells that the objects are not known, since values are missing or wrong: then nothing is
	// said about an object that is not there.
	NotRendered bool
	// MadeUp, which may be nil, tells of a text whether it stands for what an admin would give: its form says
	// nothing then.
	MadeUp func(text string) bool

	// What the platform hands to charts under .Values.zaentrum and they may use without rendering it.
	MediaClaim       string   // zaentrum.media.claimName
	EventsTLSSecret  string   // zaentrum.events.tlsSecret; empty for none
	ImagePullSecrets []string // zaentrum.imagePullSecrets
}

// ChartFacts are the parts of Chart.yaml and of the archive that rules look at.
type ChartFacts struct {
	APIVersion  string
	Type        string
	Annotations map[string]string
	CRDs        []string // paths of files under crds/, subcharts included
}

// Check runs every rule but the notices on the chart and on every object. It stops at nothing: all findings are
// reported, those of the chart first, then object by object in the given order, for each in the table's order.
func Check(f Facts) []Finding {
	return check(slices.DeleteFunc(Rules(), func(r Rule) bool { return r.Notice }), f)
}

// Notices runs the others: what the admin who reads the plan should know, and the chart's author cannot be told to
// change.
func Notices(f Facts) []Finding {
	return check(slices.DeleteFunc(Rules(), func(r Rule) bool { return !r.Notice }), f)
}

func check(rules []Rule, f Facts) []Finding {
	s := newScope(f)
	var found []Finding
	for _, r := range rules {
		if r.chart == nil {
			continue
		}
		for _, h := range r.chart(s) {
			found = append(found, r.finding(ChartKind, "", "", h))
		}
	}
	for _, o := range s.objects {
		for _, r := range rules {
			if r.object == nil || !r.covers(o.id.Kind) {
				continue
			}
			for _, h := range r.object(s, o) {
				found = append(found, r.finding(o.id.Kind, o.id.Name, o.source, h))
			}
		}
	}
	return found
}

// CheckOwnership is the one rule that needs to know the cluster: taken are the objects the chart renders
// that exist already and are not controlled by this addon, as they were observed.
func CheckOwnership(taken []manifest.ID) []Finding {
	return checkOwnership(Rules(), taken)
}

func checkOwnership(rules []Rule, taken []manifest.ID) []Finding {
	var found []Finding
	for _, r := range rules {
		if !r.observed {
			continue
		}
		for _, id := range taken {
			found = append(found, r.finding(id.Kind, id.Name, "", hit{what: "exists and is not controlled by this addon"}))
		}
	}
	return found
}

// scope is what rules know beyond the object they look at.
type scope struct {
	Facts
	objects []*object

	// Names the chart renders, in exactly the API version they must have.
	secrets, configMaps, claims, serviceAccounts, services map[string]bool
}

func newScope(f Facts) *scope {
	s := &scope{
		Facts:   f,
		secrets: map[string]bool{}, configMaps: map[string]bool{}, claims: map[string]bool{},
		serviceAccounts: map[string]bool{}, services: map[string]bool{},
	}
	rendered := map[manifest.ID]map[string]bool{
		{APIVersion: "v1", Kind: kindSecret}:         s.secrets,
		{APIVersion: "v1", Kind: kindConfigMap}:      s.configMaps,
		{APIVersion: "v1", Kind: kindClaim}:          s.claims,
		{APIVersion: "v1", Kind: kindServiceAccount}: s.serviceAccounts,
		{APIVersion: "v1", Kind: kindService}:        s.services,
	}
	seen := map[[2]string]bool{}
	for _, m := range f.Objects {
		o := &object{source: m.Source, id: m.ID(), root: value{raw: m.Tree}}
		if o.id.Name != "" {
			key := [2]string{o.id.Kind, o.id.Name}
			o.again = seen[key]
			seen[key] = true
			if names := rendered[manifest.ID{APIVersion: o.id.APIVersion, Kind: o.id.Kind}]; names != nil {
				names[o.id.Name] = true
			}
		}
		o.faults = faults(o.id, o.root, f.MadeUp)
		s.objects = append(s.objects, o)
	}
	return s
}

// object is one rendered object as rules look at it.
type object struct {
	source string
	id     manifest.ID
	root   value
	again  bool    // an object of this kind and name came before it
	faults []fault // where the tree is not what its kind and version say
}

// The kinds of an addon. ChartKind stands for the chart itself.
const (
	ChartKind          = "Chart"
	kindServiceAccount = "ServiceAccount"
	kindSecret         = "Secret"
	kindConfigMap      = "ConfigMap"
	kindClaim          = "PersistentVolumeClaim"
	kindService        = "Service"
	kindDeployment     = "Deployment"
	kindJob            = "Job"
)

// allowedVersion is the one API version in which an addon may have objects of the kind; empty for kinds
// it may not have.
func allowedVersion(kind string) string {
	switch kind {
	case kindServiceAccount, kindSecret, kindConfigMap, kindClaim, kindService:
		return "v1"
	case kindDeployment:
		return "apps/v1"
	case kindJob:
		return "batch/v1"
	}
	return ""
}

// template is the pod template of a Deployment or Job; nothing stands there for other kinds.
func (o *object) template() value {
	if o.id.Kind != kindDeployment && o.id.Kind != kindJob {
		return value{}
	}
	return o.root.at("spec", "template")
}

// marks are the annotations and labels of the object and of its pods.
func (o *object) marks() []value {
	metadata, pods := o.root.at("metadata"), o.template().at("metadata")
	return []value{metadata.at("annotations"), metadata.at("labels"), pods.at("annotations"), pods.at("labels")}
}

// pod is the pod spec of a Deployment or Job.
func (o *object) pod() value { return o.template().at("spec") }

// containers are all containers of the pod, whatever list they stand in.
func (o *object) containers() []value {
	pod := o.pod()
	var all []value
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		all = append(all, pod.at(list).items()...)
	}
	return all
}

// securityContexts are those of the pod and of all its containers.
func (o *object) securityContexts() []value {
	all := []value{o.pod().at("securityContext")}
	for _, c := range o.containers() {
		all = append(all, c.at("securityContext"))
	}
	return all
}
