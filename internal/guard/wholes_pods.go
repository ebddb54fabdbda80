package guard

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"zaentrum.io/zae/api/v1alpha1"
)

// What the API server asks of workloads and their pods beyond single fields.

func deploymentSpec(v value) []hit {
	var hits []hit
	template := v.at("template")
	hits = append(hits, fitsTemplate(v.at("selector"), template.at("metadata", "labels"))...)
	if policy := template.at("spec", "restartPolicy"); !policy.anyOf("Always") {
		hits = append(hits, policy.hit("must be Always in a Deployment"))
	}
	if deadline := template.at("spec", "activeDeadlineSeconds"); deadline.raw != nil {
		hits = append(hits, deadline.hit("not in a Deployment, whose pods never end"))
	}
	deadline := v.at("progressDeadlineSeconds")
	if deadline.whole(600) <= v.at("minReadySeconds").whole(0) {
		hits = append(hits, deadline.hit("must be more than minReadySeconds"))
	}
	return hits
}

// fitsTemplate holds a Deployment's selector against the labels of its own pods, with those that the operator adds to
// them, whatever their values will be.
func fitsTemplate(selector, template value) []hit {
	if selector.raw == nil {
		return nil // told as missing
	}
	if len(selector.at("matchLabels").keys())+len(selector.at("matchExpressions").items()) == 0 {
		return []hit{selector.hit("selects nothing")}
	}
	want, err := selector.selector()
	if err != nil {
		return nil // told where it is wrong
	}
	of := texted(template)
	maps.DeleteFunc(of, func(k, _ string) bool { return strings.HasPrefix(k, markPrefix) }) // the operator drops them
	for _, k := range []string{v1alpha1.LabelComponent, v1alpha1.LabelAddon} {
		if mark := selector.at("matchLabels", k).text(); mark != "" {
			of[k] = mark
		}
	}
	if !want.Matches(labels.Set(of)) {
		return []hit{selector.hit("does not fit the labels of the pod template")}
	}
	return nil
}

// selector is what stands here as a label selector.
func (v value) selector() (labels.Selector, error) {
	s := &metav1.LabelSelector{MatchLabels: texted(v.at("matchLabels"))}
	for _, e := range v.at("matchExpressions").items() {
		r := metav1.LabelSelectorRequirement{Key: e.at("key").text(), Operator: metav1.LabelSelectorOperator(e.at("operator").text())}
		for _, one := range e.at("values").items() {
			r.Values = append(r.Values, one.text())
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return metav1.LabelSelectorAsSelector(s)
}

// whole is the whole number that stands here, and otherwise the one that the API server puts there.
func (v value) whole(otherwise int64) int64 {
	if n, ok := v.raw.(int64); ok {
		return n
	}
	return otherwise
}

func rollout(v value) []hit {
	rolling := v.at("rollingUpdate")
	switch {
	case rolling.raw == nil:
		return nil
	case v.at("type").is("Recreate"):
		return []hit{rolling.hit("goes with type: RollingUpdate")}
	}
	var hits []hit
	none := func(count value) bool { return count.zero() || count.is("0%") || count.is("00%") || count.is("0") }
	unavailable := rolling.at("maxUnavailable")
	if none(unavailable) && none(rolling.at("maxSurge")) {
		hits = append(hits, unavailable.hit("must not be 0 when maxSurge is 0"))
	}
	if share, ok := strings.CutSuffix(unavailable.text(), "%"); ok {
		if n, err := strconv.Atoi(share); err == nil && n > 100 {
			hits = append(hits, unavailable.hit("must be at most 100%%"))
		}
	}
	return hits
}

func jobSpec(v value) []hit {
	var hits []hit
	policy := v.at("template", "spec", "restartPolicy")
	switch failures := v.at("podFailurePolicy"); {
	case !policy.is("Never") && !policy.is("OnFailure"):
		hits = append(hits, policy.hit("must be Never or OnFailure in a Job"))
	case failures.raw != nil && !policy.is("Never"):
		hits = append(hits, policy.hit("must be Never beside podFailurePolicy"))
	}
	if replace := v.at("podReplacementPolicy"); v.at("podFailurePolicy").raw != nil && !replace.anyOf("Failed") {
		hits = append(hits, replace.hit("must be Failed beside podFailurePolicy"))
	}
	hits = append(hits, failingContainers(v)...)
	if v.at("completionMode").is("Indexed") {
		return append(hits, indexedJob(v)...)
	}
	for _, k := range []string{"backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"} {
		if field := v.at(k); field.raw != nil {
			hits = append(hits, field.hit("goes with completionMode: Indexed"))
		}
	}
	return hits
}

// maxIndexed is how many pods of an indexed Job may run or fail.
const maxIndexed = 100_000

func indexedJob(v value) []hit {
	parallelism, completions := v.at("parallelism"), v.at("completions")
	if completions.raw == nil && parallelism.raw != nil {
		return []hit{completions.hit("missing: an indexed Job wants it beside parallelism")}
	}
	total := completions.whole(1)
	var hits []hit
	if parallelism.whole(1) > maxIndexed {
		hits = append(hits, parallelism.hit("must be at most %d in an indexed Job", maxIndexed))
	}
	failed, perIndex := v.at("maxFailedIndexes"), v.at("backoffLimitPerIndex")
	if failed.whole(0) > min(total, maxIndexed) {
		hits = append(hits, failed.hit("must be at most completions"))
	}
	if failed.raw != nil && perIndex.raw == nil {
		hits = append(hits, perIndex.hit("missing: maxFailedIndexes wants it"))
	}
	for _, r := range v.at("successPolicy", "rules").items() {
		count := r.at("succeededCount")
		switch {
		case count.whole(0) > total:
			hits = append(hits, count.hit("must be at most completions"))
		case count.raw == nil && r.at("succeededIndexes").raw == nil:
			hits = append(hits, r.hit("must have succeededCount or succeededIndexes"))
		}
	}
	return hits
}

func failingContainers(v value) []hit {
	pod := v.at("template", "spec")
	names := map[string]bool{}
	for _, c := range append(pod.at("containers").items(), pod.at("initContainers").items()...) {
		names[c.at("name").text()] = true
	}
	var hits []hit
	for _, r := range v.at("podFailurePolicy", "rules").items() {
		if name := r.at("onExitCodes", "containerName"); name.raw != nil && (name.is("") || !names[name.text()]) {
			hits = append(hits, name.hit("no container of this name in the pod"))
		}
	}
	return hits
}

func exitCodes(v value) []hit {
	var hits []hit
	last := int64(-1 << 32)
	for _, code := range v.at("values").items() {
		n := code.whole(last + 1)
		if n == 0 && v.at("operator").is("In") {
			hits = append(hits, code.hit("0 is no failure"))
		}
		if n <= last {
			hits = append(hits, code.hit("must be more than the one before it"))
		}
		last = n
	}
	return hits
}

func podSpec(v value) []hit {
	var hits []hit
	volumes := map[string]value{}
	for _, one := range v.at("volumes").items() {
		volumes[one.at("name").text()] = one
	}
	names := map[string]bool{}
	for _, c := range v.at("containers").items() {
		names[c.at("name").text()] = true
		hits = append(hits, mounts(volumes, c)...)
		hits = append(hits, sleeps(v, c)...)
	}
	for _, c := range v.at("initContainers").items() {
		if name := c.at("name"); name.text() != "" && names[name.text()] {
			hits = append(hits, name.hit("same name as another container"))
		}
		hits = append(hits, mounts(volumes, c)...)
		if c.at("restartPolicy").is("Always") {
			hits = append(hits, sleeps(v, c)...)
			continue
		}
		for _, k := range []string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
			if field := c.at(k); field.raw != nil {
				hits = append(hits, field.hit("goes with restartPolicy: Always in an init container"))
			}
		}
	}
	if servers := v.at("dnsConfig", "nameservers"); v.at("dnsPolicy").is("None") && servers.absent() {
		hits = append(hits, servers.hit("missing: dnsPolicy None wants it"))
	}
	return hits
}

func mounts(volumes map[string]value, c value) []hit {
	var hits []hit
	for _, list := range []string{"volumeMounts", "volumeDevices"} {
		for _, m := range c.at(list).items() {
			name := m.at("name")
			switch volume, ok := volumes[name.text()]; {
			case name.text() == "": // told as missing
			case !ok:
				hits = append(hits, name.hit("no volume of this name in the pod"))
			case list == "volumeDevices" && volume.at("persistentVolumeClaim").raw == nil:
				hits = append(hits, name.hit("the volume is of no claim, so it is no device"))
			}
		}
	}
	return hits
}

// sleeps holds the hooks that sleep against the time that the pod has to end.
func sleeps(pod, c value) []hit {
	var hits []hit
	for _, when := range []string{"postStart", "preStop"} {
		seconds := c.at("lifecycle", when, "sleep", "seconds")
		if seconds.raw != nil && seconds.whole(0) > pod.at("terminationGracePeriodSeconds").whole(30) {
			hits = append(hits, seconds.hit("must be at most terminationGracePeriodSeconds, which is 30 by default"))
		}
	}
	if signal := c.at("lifecycle", "stopSignal"); !signal.absent() && pod.at("os", "name").absent() {
		hits = append(hits, signal.hit("goes with os.name"))
	}
	return hits
}

func containerSpec(v value) []hit {
	var hits []hit
	names := map[string]string{} // of ports, and what each is
	for _, p := range v.at("ports").items() {
		name := p.at("name")
		id, _ := entryID(p, []string{"containerPort", "protocol"})
		if before, ok := names[name.text()]; ok && name.text() != "" && before != id { // the same port twice has a rule of its own
			hits = append(hits, name.hit("same name as a port before it"))
		}
		names[name.text()] = id
	}
	for _, probe := range []string{"livenessProbe", "startupProbe"} {
		if n := v.at(probe, "successThreshold"); n.whole(0) > 1 {
			hits = append(hits, n.hit("must be 1 but in a readinessProbe"))
		}
	}
	if grace := v.at("readinessProbe", "terminationGracePeriodSeconds"); grace.raw != nil {
		hits = append(hits, grace.hit("not in a readinessProbe, which ends nothing"))
	}
	for _, e := range v.at("env").items() {
		hits = append(hits, fieldPath(e.at("valueFrom", "fieldRef", "fieldPath"), "spec.nodeName", "spec.serviceAccountName",
			"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")...)
	}
	return hits
}

// fieldPath judges what of a pod its own containers are told: these, and what they always are.
func fieldPath(v value, more ...string) []hit {
	text := v.text()
	for _, whole := range []string{"metadata.labels", "metadata.annotations"} {
		if strings.HasPrefix(text, whole+"['") && strings.HasSuffix(text, "']") {
			return nil
		}
	}
	if v.anyOf(append(more, "metadata.name", "metadata.namespace", "metadata.uid")...) {
		return nil
	}
	return []hit{v.hit("no field that a pod can be told of here")}
}

func downwardFile(v value) []hit {
	hits := exactlyOne("fieldRef", "resourceFieldRef")(v)
	hits = append(hits, fieldPath(v.at("fieldRef", "fieldPath"), "metadata.labels", "metadata.annotations")...)
	if of := v.at("resourceFieldRef"); of.raw != nil && of.at("containerName").absent() {
		hits = append(hits, of.at("containerName").hit("missing"))
	}
	return hits
}

func resourceField(v value) []hit {
	at := v.at("resource")
	kind, name, _ := strings.Cut(at.text(), ".")
	if !at.absent() && (kind != "limits" && kind != "requests" || !standardResource(name)) {
		return []hit{at.hit("must be limits or requests of cpu, memory, ephemeral-storage or huge pages")}
	}
	units := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if name == "cpu" {
		units = []string{"1", "1m"}
	}
	divisor := v.at("divisor")
	if q, ok := divisor.quantity(); ok && !q.IsZero() && !slices.Contains(units, q.String()) {
		return []hit{divisor.hit("must be a unit such as %s", units[1])}
	}
	return nil
}

func standardResource(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-")
}

func valueOrFrom(v value) []hit {
	if from := v.at("valueFrom"); from.raw != nil && v.at("value").text() != "" {
		return []hit{from.hit("goes without a value")}
	}
	return nil
}

func mount(v value) []hit {
	if expr := v.at("subPathExpr"); expr.text() != "" && v.at("subPath").text() != "" {
		return []hit{expr.hit("goes without subPath")}
	}
	if r := v.at("recursiveReadOnly"); !r.anyOf("Disabled") && v.at("readOnly").raw != true {
		return []hit{r.hit("goes with readOnly: true")}
	}
	return nil
}

// projectedPaths tells apart the files of one volume. Those of a whole Secret or ConfigMap are not known here.
func projectedPaths(v value) []hit {
	var hits []hit
	seen := map[string]bool{}
	for _, s := range v.at("sources").items() {
		paths := []value{s.at("clusterTrustBundle", "path")}
		for _, kind := range []string{"secret", "configMap", "downwardAPI"} {
			for _, item := range s.at(kind, "items").items() {
				paths = append(paths, item.at("path"))
			}
		}
		for _, p := range paths {
			if p.text() != "" && seen[p.text()] {
				hits = append(hits, p.hit("same path as a file before it"))
			}
			seen[p.text()] = true
		}
	}
	return hits
}

func localhostProfile(v value) []hit {
	profile := v.at("localhostProfile")
	switch local := v.at("type").is("Localhost"); {
	case local && profile.raw == nil:
		return []hit{profile.hit("missing: type Localhost wants it")}
	case !local && profile.raw != nil:
		return []hit{profile.hit("goes with type: Localhost")}
	}
	return nil
}

func toleration(v value) []hit {
	var hits []hit
	if text := v.at("value"); text.text() != "" && v.at("operator").is("Exists") {
		hits = append(hits, text.hit("goes without operator: Exists"))
	}
	if seconds := v.at("tolerationSeconds"); seconds.raw != nil && !v.at("effect").is("NoExecute") {
		hits = append(hits, seconds.hit("goes with effect: NoExecute"))
	}
	return hits
}

func spread(v value) []hit {
	if n := v.at("minDomains"); n.raw != nil && !v.at("whenUnsatisfiable").is("DoNotSchedule") {
		return []hit{n.hit("goes with whenUnsatisfiable: DoNotSchedule")}
	}
	return nil
}

// resources holds requests against limits. What cannot be shared, such as a device, has both and the same.
func resources(v value) []hit {
	var hits []hit
	requests, limits := v.at("requests"), v.at("limits")
	if claims := v.at("claims"); len(claims.items()) > 0 {
		hits = append(hits, claims.hit("the pod has no claims of devices, which are not allowed"))
	}
	for _, list := range []value{limits, requests} {
		for _, k := range list.keys() {
			at := list.at(k)
			if !standardResource(k) && !strings.Contains(k, "/") {
				hits = append(hits, at.hit("no resource: cpu, memory, ephemeral-storage, or a name such as example.org/device"))
			}
			if q, ok := at.quantity(); ok && q.Sign() < 0 {
				hits = append(hits, at.hit("must not be negative"))
			}
		}
	}
	for _, k := range requests.keys() {
		shared := k == "cpu" || k == "memory" || k == "ephemeral-storage"
		request, ok := requests.at(k).quantity()
		limit, limited := limits.at(k).quantity()
		switch {
		case limits.at(k).raw == nil && !shared:
			hits = append(hits, limits.at(k).hit("missing: this resource has a limit, the same as its request"))
		case !ok || !limited:
		case request.Cmp(limit) > 0:
			hits = append(hits, requests.at(k).hit("more than the limit"))
		case request.Cmp(limit) < 0 && !shared:
			hits = append(hits, requests.at(k).hit("must be the same as the limit"))
		}
	}
	return hits
}

// quantity is the quantity that stands here. Only a text that is one reaches the parser.
func (v value) quantity() (resource.Quantity, bool) {
	text := v.text()
	switch n := v.raw.(type) {
	case int64:
		text = strconv.FormatInt(n, 10)
	case float64:
		text = strconv.FormatFloat(n, 'f', -1, 64)
	}
	if !quantity(text) {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}
