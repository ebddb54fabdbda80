package e2e

import (
	"fmt"
)

func addonChart(name string) tarEntry {
	return tarEntry{name: name + "/Chart.yaml", text: "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\nannotations: {zaentrum.io/addon: \"true\", zaentrum.io/primary: " + name + "}\n"}
}

// template is a pod template.
func (m *maker) template(labels object, restart string) object {
	meta := object{"labels": labels}
	m.maybe(meta, "annotations", object{"prometheus.io/scrape": "true"})
	spec := object{"volumes": m.volumes()}
	if restart != "Always" || m.bool() {
		spec["restartPolicy"] = restart
	}
	var containers []any
	for i := range 1 + m.IntN(3) {
		c := m.container(fmt.Sprintf("c%d", i))
		if i == 0 {
			c["ports"] = []any{object{"name": "http", "containerPort": 8080, "protocol": "TCP"}, object{"containerPort": 8080, "protocol": "UDP"}}
		}
		m.probes(c)
		m.maybe(c, "lifecycle", object{"preStop": m.one(object{"sleep": object{"seconds": 1}}, object{"exec": object{"command": []any{"true"}}}, object{"httpGet": object{"port": "http", "path": "/"}})})
		containers = append(containers, c)
	}
	spec["containers"] = containers
	if m.bool() {
		sidecar := m.container("sidecar")
		sidecar["restartPolicy"] = "Always"
		m.probes(sidecar)
		spec["initContainers"] = []any{m.container("init"), sidecar}
	}
	for key, v := range map[string]any{
		"terminationGracePeriodSeconds": 1 + m.IntN(59),
		"dnsPolicy":                     m.one("ClusterFirst", "Default"),
		"dnsConfig":                     object{"nameservers": []any{"192.0.2.1"}, "searches": []any{"a.example"}, "options": []any{object{"name": "ndots", "value": "2"}}},
		"automountServiceAccountToken":  m.bool(),
		"shareProcessNamespace":         m.bool(),
		"hostname":                      "h",
		"setHostnameAsFQDN":             m.bool(),
		"hostAliases":                   []any{object{"ip": "192.0.2.1", "hostnames": []any{"a.example"}}, object{"ip": "2001:db8::1", "hostnames": []any{"b.example"}}},
		"enableServiceLinks":            m.bool(),
		"schedulerName":                 "default-scheduler",
		"hostUsers":                     true,
		"os":                            object{"name": "linux"},
		"nodeSelector":                  object{"kubernetes.io/os": "linux"},
		"tolerations":                   []any{object{"key": "media", "operator": "Exists", "effect": "NoSchedule"}, object{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 30}},
		"imagePullSecrets":              []any{object{"name": m.some(m.secrets)}},
		"readinessGates":                []any{object{"conditionType": "example.org/ready"}},
		"topologySpreadConstraints":     []any{object{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": object{"matchLabels": object{"app": m.name}}}},
		"affinity": object{
			"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": []any{object{"matchExpressions": []any{
				object{"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}, object{"key": "kubernetes.io/arch", "operator": "In", "values": []any{"amd64", "arm64"}},
			}}}}},
			"podAntiAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": []any{object{"weight": 5, "podAffinityTerm": object{"topologyKey": "kubernetes.io/hostname", "labelSelector": object{"matchLabels": object{"app": m.name}}}}}},
		},
		"securityContext": m.podSecurity(),
	} {
		m.maybe(spec, key, v)
	}
	if len(m.accounts) > 0 {
		m.maybe(spec, "serviceAccountName", m.some(m.accounts))
	}
	return object{"metadata": meta, "spec": spec}
}

func (m *maker) podSecurity() object {
	s := object{}
	for key, v := range map[string]any{
		"runAsUser": 1 + m.IntN(70000), "runAsGroup": m.IntN(3), "runAsNonRoot": true, "fsGroup": m.IntN(3),
		"fsGroupChangePolicy": "OnRootMismatch", "supplementalGroups": []any{0, 7}, "supplementalGroupsPolicy": m.one("Merge", "Strict"),
		"seccompProfile": m.profile(), "seLinuxOptions": object{"level": "s0:c1,c2"}, "seLinuxChangePolicy": "Recursive",
		"appArmorProfile": m.profile(),
	} {
		m.maybe(s, key, v)
	}
	return s
}

func (m *maker) profile() object {
	return m.one(object{"type": "RuntimeDefault"}, object{"type": "Localhost", "localhostProfile": "profiles/x"}).(object)
}

func (m *maker) container(name string) object {
	c := object{"name": name, "image": m.one("ghcr.io/example/x:1", "x", "x@sha256:"+fmt.Sprintf("%064d", 1))}
	env := []any{
		object{"name": "PLAIN", "value": "$(OTHER) x"}, object{"name": "EMPTY"},
		object{"name": "SECRET", "valueFrom": object{"secretKeyRef": object{"name": m.some(m.secrets), "key": "a", "optional": m.bool()}}},
		object{"name": "CONFIG", "valueFrom": object{"configMapKeyRef": object{"name": m.some(m.configs), "key": "a.yaml"}}},
		object{"name": "IP", "valueFrom": object{"fieldRef": object{"fieldPath": m.one("status.podIP", "metadata.name", "spec.nodeName", "metadata.labels['app']")}}},
		object{"name": "CPU", "valueFrom": object{"resourceFieldRef": object{"resource": "limits.cpu", "divisor": m.one("1m", 1)}}},
	}
	security := object{}
	for key, v := range map[string]any{
		"runAsUser": 65532, "runAsGroup": 0, "runAsNonRoot": true, "readOnlyRootFilesystem": m.bool(), "privileged": false,
		"procMount": "Default", "capabilities": m.one(object{}, object{"drop": []any{}}, object{"drop": []any{"ALL"}}, object{"drop": []any{"NET_RAW"}, "add": []any{}}),
		"seccompProfile": m.profile(), "appArmorProfile": m.profile(), "allowPrivilegeEscalation": false, "seLinuxOptions": object{"level": "s0"},
	} {
		m.maybe(security, key, v)
	}
	for key, v := range map[string]any{
		"env": env[:1+m.IntN(len(env))], "securityContext": security, "command": []any{"run"}, "args": []any{"-x", ""}, "workingDir": "/w",
		"envFrom":         []any{object{"prefix": "P_", "secretRef": object{"name": m.some(m.secrets)}}, object{"configMapRef": object{"name": m.some(m.configs), "optional": true}}},
		"imagePullPolicy": m.one("Always", "IfNotPresent", "Never"), "stdin": m.bool(), "tty": m.bool(),
		"terminationMessagePath": "/dev/log", "terminationMessagePolicy": m.one("File", "FallbackToLogsOnError"),
		"resources": object{"requests": object{"cpu": m.one("10m", 0.1, 1), "memory": "16Mi", "ephemeral-storage": "1M"}, "limits": object{"cpu": 2, "memory": m.one("1Gi", "128974848")}},
		"volumeMounts": []any{
			object{"name": "empty", "mountPath": "/empty", "subPath": "a/b"}, object{"name": "config", "mountPath": "/config", "readOnly": true, "mountPropagation": "None"},
			object{"name": "projected", "mountPath": "/p", "readOnly": true}, object{"name": "media", "mountPath": "/media"},
		},
		"resizePolicy": []any{object{"resourceName": "cpu", "restartPolicy": "NotRequired"}},
	} {
		m.maybe(c, key, v)
	}
	return c
}

func (m *maker) probes(c object) {
	probe := func(liveness bool) object {
		p := m.one(
			object{"httpGet": object{"path": "/healthz", "port": 8080, "scheme": "HTTPS", "httpHeaders": []any{object{"name": "Host", "value": "a.example"}}}},
			object{"tcpSocket": object{"port": 8080}}, object{"exec": object{"command": []any{"true"}}}, object{"grpc": object{"port": 8080, "service": "x"}},
		).(object)
		m.maybe(p, "initialDelaySeconds", m.IntN(5))
		m.maybe(p, "periodSeconds", 1+m.IntN(5))
		m.maybe(p, "timeoutSeconds", 1)
		m.maybe(p, "failureThreshold", 3)
		if liveness {
			m.maybe(p, "terminationGracePeriodSeconds", 5)
		} else {
			m.maybe(p, "successThreshold", 2)
		}
		return p
	}
	m.maybe(c, "livenessProbe", probe(true))
	m.maybe(c, "readinessProbe", probe(false))
	m.maybe(c, "startupProbe", probe(true))
}

// volumes are always there, so that every mount has its own.
func (m *maker) volumes() []any {
	all := []any{
		m.one(object{"name": "empty"}, object{"name": "empty", "emptyDir": object{}}, object{"name": "empty", "emptyDir": object{"medium": "Memory", "sizeLimit": "1Mi"}}),
		object{"name": "config", "configMap": object{"name": m.some(m.configs), "defaultMode": 0o440, "items": []any{object{"key": "a.yaml", "path": "sub/a.yaml", "mode": 0o400}}, "optional": m.bool()}},
		object{"name": "secret", "secret": object{"secretName": m.some(m.secrets), "optional": m.bool()}},
		object{"name": "down", "downwardAPI": object{"items": []any{object{"path": "labels", "fieldRef": object{"fieldPath": "metadata.labels"}}, object{"path": "cpu", "resourceFieldRef": object{"containerName": "c0", "resource": "limits.cpu"}}}}},
		object{"name": "projected", "projected": object{"defaultMode": 0o400, "sources": []any{
			object{"configMap": object{"name": m.some(m.configs)}}, object{"secret": object{"name": m.some(m.secrets), "optional": true}},
			object{"serviceAccountToken": object{"path": "t", "audience": "x", "expirationSeconds": 3600}}, object{"downwardAPI": object{"items": []any{object{"path": "n", "fieldRef": object{"fieldPath": "metadata.namespace"}}}}},
		}}},
		object{"name": "media", "persistentVolumeClaim": object{"claimName": "media"}},
	}
	for i, c := range m.claim {
		all = append(all, object{"name": fmt.Sprintf("claim%d", i), "persistentVolumeClaim": object{"claimName": c, "readOnly": m.bool()}})
	}
	return all
}
