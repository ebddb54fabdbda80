package guard

import (
	"slices"
	"strings"
)

// Rules about pods: what they may share with their node, and as whom their containers run. In a rule
// about a boolean everything but the harmless value counts, also what is no boolean.

func noHostNetwork(_ *scope, o *object) []hit { return podFlag(o, "hostNetwork") }
func noHostPID(_ *scope, o *object) []hit     { return podFlag(o, "hostPID") }
func noHostIPC(_ *scope, o *object) []hit     { return podFlag(o, "hostIPC") }

func podFlag(o *object, field string) []hit {
	v := o.pod().at(field)
	if !v.unless(false) {
		return nil
	}
	return []hit{v.hit("%s not allowed", field)}
}

func noHostPort(_ *scope, o *object) []hit {
	var hits []hit
	for _, c := range o.containers() {
		for _, p := range c.at("ports").items() {
			if v := p.at("hostPort"); !v.blank() && !v.zero() {
				hits = append(hits, v.hit("hostPort not allowed"))
			}
			hits = append(hits, filled("hostIP not allowed", p.at("hostIP"))...)
		}
	}
	return hits
}

func noPrivileged(_ *scope, o *object) []hit {
	return contextHits(o, func(sc value) []hit {
		return unlessBool(sc.at("privileged"), false, "privileged container not allowed")
	})
}

func noPrivilegeEscalation(_ *scope, o *object) []hit {
	return contextHits(o, func(sc value) []hit {
		return unlessBool(sc.at("allowPrivilegeEscalation"), false, "allowPrivilegeEscalation must not be true")
	})
}

func noAddedCapabilities(_ *scope, o *object) []hit {
	return contextHits(o, func(sc value) []hit {
		return filled("added capabilities not allowed", sc.at("capabilities", "add"))
	})
}

func noRootUser(_ *scope, o *object) []hit {
	return contextHits(o, func(sc value) []hit {
		if v := sc.at("runAsUser"); v.zero() {
			return []hit{v.hit("runAsUser 0 not allowed")}
		}
		return nil
	})
}

func runAsNonRoot(_ *scope, o *object) []hit {
	return contextHits(o, func(sc value) []hit {
		return unlessBool(sc.at("runAsNonRoot"), true, "runAsNonRoot must not be false")
	})
}

func defaultProcMount(_ *scope, o *object) []hit {
	return contextHits(o, func(sc value) []hit {
		if v := sc.at("procMount"); !v.anyOf("Default") {
			return []hit{v.hit("procMount other than Default not allowed")}
		}
		return nil
	})
}

func noSELinuxOptions(_ *scope, o *object) []hit {
	return contextHits(o, func(sc value) []hit {
		options := sc.at("seLinuxOptions")
		var hits []hit
		for _, k := range []string{"type", "user", "role"} {
			hits = append(hits, filled("seLinuxOptions."+k+" not allowed", options.at(k))...)
		}
		return hits
	})
}

func noSysctls(_ *scope, o *object) []hit {
	return filled("sysctls not allowed", o.pod().at("securityContext", "sysctls"))
}

func noUnconfinedAppArmor(_ *scope, o *object) []hit {
	hits := contextHits(o, func(sc value) []hit {
		profile := sc.at("appArmorProfile")
		hits := unconfined(profile, "AppArmor profile must be RuntimeDefault or Localhost")
		if name := profile.at("localhostProfile"); namedUnconfined(name.text()) {
			hits = append(hits, name.hit("AppArmor profile must not be unconfined"))
		}
		return hits
	})
	return append(hits, annotated(o, "AppArmor profile must be runtime/default or localhost/…",
		func(key string) bool {
			return strings.HasPrefix(key, "container.apparmor.security.beta.kubernetes.io/")
		},
		"runtime/default")...)
}

func noUnconfinedSeccomp(_ *scope, o *object) []hit {
	hits := contextHits(o, func(sc value) []hit {
		return unconfined(sc.at("seccompProfile"), "seccomp profile must be RuntimeDefault or Localhost")
	})
	return append(hits, annotated(o, "seccomp profile must be runtime/default or localhost/…",
		func(key string) bool {
			return key == "seccomp.security.alpha.kubernetes.io/pod" ||
				strings.HasPrefix(key, "container.seccomp.security.alpha.kubernetes.io/")
		},
		"runtime/default", "docker/default")...)
}

// unconfined judges a profile by what its type allows. One without a type is none that the cluster accepts, and it
// would stand where the operator's default does.
func unconfined(profile value, what string) []hit {
	if t := profile.at("type"); profile.raw != nil && !t.is("RuntimeDefault") && !t.is("Localhost") {
		return []hit{t.hit("%s", what)}
	}
	return nil
}

// annotated judges profiles in the older form, as annotations of the pod.
func annotated(o *object, what string, about func(key string) bool, allowed ...string) []hit {
	var hits []hit
	annotations := o.template().at("metadata", "annotations")
	for _, k := range annotations.keys() {
		v := annotations.at(k)
		local, isLocal := strings.CutPrefix(v.text(), "localhost/")
		if about(k) && !v.anyOf(allowed...) && (!isLocal || namedUnconfined(local)) {
			hits = append(hits, v.hit("%s", what))
		}
	}
	return hits
}

// namedUnconfined tells a profile of the node's that is none: AppArmor has one of this name in each of its namespaces.
func namedUnconfined(profile string) bool {
	return strings.TrimSpace(profile[strings.LastIndexAny(profile, ":/")+1:]) == "unconfined"
}

func noHostProcess(_ *scope, o *object) []hit {
	return contextHits(o, func(sc value) []hit {
		return unlessBool(sc.at("windowsOptions", "hostProcess"), false, "hostProcess not allowed")
	})
}

func noPriorityClass(_ *scope, o *object) []hit {
	hits := filled("priorityClassName not allowed", o.pod().at("priorityClassName"))
	if v := o.pod().at("priority"); v.raw != nil && !v.zero() {
		hits = append(hits, v.hit("priority not allowed"))
	}
	return hits
}

func noEphemeralContainers(_ *scope, o *object) []hit {
	return filled("ephemeralContainers not allowed", o.pod().at("ephemeralContainers"))
}

func noDeviceClaims(_ *scope, o *object) []hit {
	hits := filled("resourceClaims not allowed", o.pod().at("resourceClaims"))
	if o.id.Kind == kindJob {
		hits = append(hits, filled("resourceClaims not allowed", o.root.at("spec", "scheduling", "resourceClaims"))...)
	}
	return hits
}

func noSchedulingGroup(_ *scope, o *object) []hit {
	return filled("schedulingGroup not allowed", o.pod().at("schedulingGroup"))
}

// linuxPods looks at every way to another system: what the pod says it is for, what the nodes are that it wants, and
// the settings that count only there. Host processes have a rule of their own.
func linuxPods(_ *scope, o *object) []hit {
	const what = "only pods of Linux are allowed"
	pod := o.pod()
	var hits []hit
	if v := pod.at("os", "name"); !v.anyOf("linux") {
		hits = append(hits, v.hit(what))
	}
	selector := pod.at("nodeSelector")
	for _, k := range selector.keys() {
		if v := selector.at(k); systemLabel(k) && !v.is("linux") || k == windowsBuild {
			hits = append(hits, v.hit(what))
		}
	}
	for _, e := range nodeRequirements(pod) {
		key := e.at("key").text()
		if systemLabel(key) && e.at("operator").is("In") && !slices.ContainsFunc(e.at("values").items(), isLinux) || key == windowsBuild && !leadsAway(e) {
			hits = append(hits, e.hit(what))
		}
	}
	return append(hits, contextHits(o, func(sc value) []hit {
		options := sc.at("windowsOptions")
		for _, k := range options.keys() {
			if k != "hostProcess" && !options.at(k).blank() {
				return []hit{options.hit("windowsOptions not allowed")}
			}
		}
		return nil
	})...)
}

const windowsBuild = "node.kubernetes.io/windows-build"

func systemLabel(key string) bool { return key == "kubernetes.io/os" || key == "beta.kubernetes.io/os" }

func isLinux(v value) bool { return v.is("linux") }

// noProbeHost keeps the node from calling somebody else: a probe and a hook without a host call the pod.
func noProbeHost(_ *scope, o *object) []hit {
	var hits []hit
	for _, c := range o.containers() {
		for _, handler := range []value{
			c.at("livenessProbe"), c.at("readinessProbe"), c.at("startupProbe"),
			c.at("lifecycle", "postStart"), c.at("lifecycle", "preStop"),
		} {
			hits = append(hits, filled("host not allowed", handler.at("httpGet", "host"), handler.at("tcpSocket", "host"))...)
		}
	}
	return hits
}

// contextHits asks a question of every security context.
func contextHits(o *object, ask func(sc value) []hit) []hit {
	var hits []hit
	for _, sc := range o.securityContexts() {
		hits = append(hits, ask(sc)...)
	}
	return slices.Clip(hits)
}

func unlessBool(v value, harmless bool, what string) []hit {
	if !v.unless(harmless) {
		return nil
	}
	return []hit{v.hit("%s", what)}
}
