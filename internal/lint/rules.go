package lint

import (
	"zaentrum.io/zae/internal/guard"
)

// Severity is how much a finding matters.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the addon does not work, or not safely
	Warning Severity = "warning" // it is hardly meant like this
	Info    Severity = "info"    // good to know
)

func (s Severity) rank() int {
	switch s {
	case Error:
		return 0
	case Warning:
		return 1
	default:
		return 2
	}
}

// Rule is one thing that authors are told about. Its text is the catalogue.
type Rule struct {
	ID       string   `json:"id"`    // permanent, kebab-case
	Title    string   `json:"title"` // what must hold, in a few words
	Severity Severity `json:"severity"`
	Why      string   `json:"why"`
	Fix      string   `json:"fix"` // the way out, for the author of the chart
	// Fixed tells that no .zaelint.yaml silences it.
	Fixed bool `json:"fixed,omitempty"`
	// Guardrail tells that the operator judges by it too.
	Guardrail bool `json:"guardrail,omitempty"`
	// Notice tells that only plans tell of it, to whoever reads them.
	Notice bool `json:"notice,omitempty"`
}

// Rules is the table of what is found for authors besides the guardrails, in report order. Ids are permanent:
// people and scripts refer to them, and none is a guardrail's.
func Rules() []Rule {
	return []Rule{
		// The chart as a whole.
		{
			ID: "chart-unreadable", Title: "the chart can be loaded", Severity: Error, Fixed: true,
			Why: "A chart that cannot be loaded can be neither rendered nor judged.",
			Fix: "Correct what the message names; then the rest is looked at.",
		},
		{
			ID: "addon-name", Title: "the chart's name can be the addon's", Severity: Error,
			Why: "The addon is called as the chart is, unless somebody says otherwise: at most 40 lower-case letters, digits and -.",
			Fix: "Rename the chart, and the service in the addon's manifest with it.",
		},
		{
			ID: "helm-lint", Title: "helm lint passes", Severity: Warning,
			Why: "An addon chart is an ordinary Helm chart, and Helm's own check should have nothing to say. Each finding has the severity that Helm gives it.",
			Fix: "Put right what the message names; helm lint has Helm's own words for it.",
		},

		// The schema.
		{
			ID: "schema-invalid", Title: "the schema is valid draft-07 with local references", Severity: Error, Fixed: true,
			Why: "With a schema that cannot be used, nothing can be installed. References to files and URLs are never fetched.",
			Fix: "Correct values.schema.json at the place the message names.",
		},
		{
			ID: "schema-dialect", Title: "the schema says that it is draft-07", Severity: Warning,
			Why: "It is read as draft-07 whatever it says, while plain Helm goes by what it says.",
			Fix: `Write "$schema": "http://json-schema.org/draft-07/schema#".`,
		},
		{
			ID: "closed-root", Title: "a closed root knows the platform's block", Severity: Warning,
			Why: "The operator leaves the key zaentrum out when it validates; plain Helm does not, and refuses it.",
			Fix: "Declare the property zaentrum, or allow additional properties at the root.",
		},
		{
			ID: "no-schema", Title: "values that are read are declared", Severity: Warning,
			Why: "Without values.schema.json there is no install form, nothing is validated, and nothing says what may be given: only the booleans of values.yaml are tried.",
			Fix: "Declare what an admin should give in values.schema.json.",
		},
		{
			ID: "input-unused", Title: "every input is read", Severity: Warning,
			Why: "An input that no template reads is asked for and does nothing.",
			Fix: "Read it in a template, or take it out of values.schema.json.",
		},
		{
			ID: "undeclared-default", Title: "values.yaml holds declared inputs", Severity: Info,
			Why: "A value that the schema does not declare is in no form, and nothing says what it may be.",
			Fix: "Declare it in values.schema.json, or write it into the template.",
		},
		{
			ID: "undeclared-value", Title: "templates read declared values", Severity: Warning,
			Why: "Neither the schema nor values.yaml has the value: it is a slip of the pen, or an input that nobody is asked for.",
			Fix: "Correct the path, or declare the input in values.schema.json.",
		},
		{
			ID: "condition-without-effect", Title: "conditions of dependencies are booleans", Severity: Warning,
			Why: "Only true and false switch a bundled chart off or on; a condition whose value is something else, or nowhere, is passed over in silence.",
			Fix: "Declare the value as a boolean in values.schema.json, with its default in values.yaml; or remove the condition.",
		},
		{
			ID: "unknown-platform-value", Title: "templates read platform values that there are", Severity: Warning,
			Why: "The platform hands over a fixed set of keys under zaentrum; another one is always empty.",
			Fix: "Use one of namespace, hostname, issuer, issuerHostAliasIP, imagePullSecrets, partOf, events.brokers, events.topicPrefix, events.tlsSecret and media.claimName.",
		},
		{
			ID: "required-may-be-empty", Title: "a required string cannot be empty", Severity: Warning,
			Why: "required asks only that the key exists: an empty string passes.",
			Fix: `Add "minLength": 1, a pattern or an enum, or give it a default in values.yaml, which a secret never has.`,
		},
		{
			ID: "secret-default", Title: "nothing in the chart is the value of a secret or generated input", Severity: Error,
			Why: "A secret default is the same secret on every instance; a generated input needs none.",
			Fix: "Take it out of values.yaml.",
		},
		{
			ID: "generator-refused", Title: "the schema takes what is generated", Severity: Error, Fixed: true,
			Why: "What the operator generates is validated like any other value. When the schema refuses it, nothing can be installed until somebody gives another one.",
			Fix: "Take pattern, format, minLength and maxLength out, or let them take what is generated: random-base64-32 makes 44 characters of base64, random-hex-32 64 hexadecimal digits in lower case.",
		},
		{
			ID: "secret-lost", Title: "writeOnly and generators are where they count", Severity: Error,
			Why: "A secret that is not recognized as one is stored and shown like any other value; a generator that is not recognized makes nothing.",
			Fix: "Put writeOnly and x-zaentrum-generate on a string property of an object, not beside $ref and not in a list or map.",
		},
		{
			ID: "input-name", Title: "input names are letters, digits, _ and -", Severity: Warning,
			Why: "Inputs are addressed by dotted path, in flags, keys and resources; other letters get in the way, and a dot makes the input unreachable.",
			Fix: "Rename the property.",
		},
		{
			ID: "input-path", Title: "input paths are of at most 250 characters", Severity: Warning,
			Why: "The path is a key in a Secret, which has no longer ones.",
			Fix: "Nest less, or use shorter names.",
		},
		{
			ID: "yaml11-key", Title: "no key that YAML 1.1 reads as a boolean", Severity: Warning,
			Why: "Helm reads bare on, off, yes, no, y and n as true and false, keys included; JSON and this platform do not.",
			Fix: "Rename it; a key that is only in values.yaml may be quoted there instead.",
		},
		{
			ID: "default-differs", Title: "defaults of schema and values.yaml agree", Severity: Warning,
			Why: "The form starts from the schema's default, which Helm never applies; everybody else gets what values.yaml says.",
			Fix: "Write the same default in both, or in none.",
		},
		{
			ID: "default-refused", Title: "the schema takes what values.yaml says", Severity: Error, Fixed: true,
			Why: "With a default that the schema refuses, nothing can be installed until somebody gives another value.",
			Fix: "Correct the value in values.yaml, or the schema.",
		},

		// What is rendered.
		{
			ID: "render-fails", Title: "whatever the schema allows renders", Severity: Error, Fixed: true,
			Why: "Values that the schema accepts are what an admin may give. Where templates ask for more, the schema should say it.",
			Fix: "Correct the template, or let the schema require what it cannot do without, and refuse what it cannot take; zae addon render with these inputs shows the template's own words.",
		},
		{
			ID: "not-rendered", Title: "values can be made up for the chart", Severity: Warning,
			Why: "What is rendered cannot be judged without values that the schema accepts, and none could be made up.",
			Fix: "Add a file ci/NAME-values.yaml with values an admin would give, secret and generated ones too.",
		},
		{
			ID: "ci-refused", Title: "the schema takes the values in ci/", Severity: Error,
			Why: "A file in ci/ is what an admin would give, secret inputs included. If the schema refuses it, the file shows nothing, or the schema refuses what is right.",
			Fix: "Correct the value in the file, or let the schema take it.",
		},
		{
			ID: "not-deterministic", Title: "the same values render the same objects", Severity: Error,
			Why: "The chart is rendered every few minutes; what changes each time is applied each time, and pods roll.",
			Fix: "Make random values generated inputs (x-zaentrum-generate), and leave times out.",
		},
		{
			ID: "random-function", Title: "no random functions", Severity: Warning,
			Why: "rand*, uuidv4, gen*, htpasswd and their kind give another value each time the chart is rendered.",
			Fix: "Declare a generated input: \"x-zaentrum-generate\": \"random-base64-32\".",
		},
		{
			ID: "reads-clock", Title: "no template reads the clock", Severity: Warning,
			Why: "What it renders changes with time, and with it the objects.",
			Fix: "Leave now and ago out.",
		},
		{
			ID: "lookup", Title: "no lookups", Severity: Warning,
			Why: "Charts are rendered without a cluster, so lookup finds nothing, ever.",
			Fix: "Leave lookup out; keep a value as a generated input.",
		},
		{
			ID: "hard-coded-platform", Title: "platform facts come from the platform", Severity: Warning,
			Why: "A hostname, issuer, broker, namespace or claim that is written into the chart is wrong on another instance.",
			Fix: "Take it from .Values.zaentrum; what is another one's after all is an exception for .zaelint.yaml.",
		},
		{
			ID: "secret-leak", Title: "secrets stay in Secrets", Severity: Error,
			Why: "A secret input outside of a Secret's data is readable by everybody who may read the object, and shown in plans.",
			Fix: "Put it into a Secret the chart renders, and refer to it with secretKeyRef or a volume.",
		},
		{
			ID: "secret-text", Title: "a secret may be any text", Severity: Error,
			Why: "A password has quotes, colons, backslashes and #, and is seldom base64. Written as it is, it breaks the YAML around it or becomes something else.",
			Fix: "Pipe it through quote, or write it into stringData; into data only through b64enc.",
		},
		{
			ID: "text-unquoted", Title: "a text stays the text that was given", Severity: Warning,
			Why: "Written into YAML as it is, yes becomes a boolean, 0123 a number and null nothing, a # cuts the text short, and a colon or a line end breaks the document.",
			Fix: "Pipe it through quote; a text of several lines into a block, with nindent; what is put together with printf, and then through quote.",
		},
		{
			ID: "text-not-narrowed", Title: "the schema says what texts the templates take", Severity: Warning,
			Why: "What a template takes for base64, YAML, a number or a version may be any text for the schema. What is none is found when it is rendered: as an error, as the words of one, or as nothing.",
			Fix: `Say in the schema what the text has to be: "pattern", "format", "minLength" or "enum".`,
		},
		{
			ID: "value-misprinted", Title: "values come out as they went in", Severity: Error,
			Why: "A number that has passed through fromYaml, float64 or the like is written as 1.048576e+07, a map without toYaml as map[…], and what printf cannot write as %!d(…).",
			Fix: "Pipe whole numbers through int64, lists and maps through toYaml or toJson, and use the verb of printf that fits: %v fits all.",
		},
		{
			ID: "number-unbounded", Title: "the schema bounds numbers as their fields do", Severity: Info,
			Why: "A number that the schema takes and the object does not is refused when it is planned, and not in the form.",
			Fix: `Add "minimum" and "maximum" to the input, such as 1 and 65535 for a port.`,
		},
		{
			ID: "secret-derived", Title: "nothing outside of a Secret depends on a secret", Severity: Warning,
			Why: "A field that changes with a secret says something about it, even when the secret itself is not seen there.",
			Fix: "Move what is made of the secret into a Secret. Annotations with a checksum need not be: pods roll by themselves.",
		},
		{
			ID: "hook", Title: "hooks are plain objects", Severity: Info,
			Why: "Every hook but a test is applied as an ordinary object on every reconcile, without order, weight or delete policy.",
			Fix: "Leave the annotation out, and order by waiting inside pods; or see that it may be there all the time, and say so in .zaelint.yaml.",
		},
		{
			ID: "helm-annotation", Title: "annotations of Helm's do nothing", Severity: Info,
			Why: "There is no Helm release: resource policies and the like have no effect, and removing the addon removes the object.",
			Fix: "Leave the annotation out; if the chart is for plain Helm as well, where it is needed, say so in .zaelint.yaml.",
		},
		{
			ID: "job-runs-again", Title: "Jobs can run more than once", Severity: Info,
			Why: "A Job whose pod template changes, with a new image or new values, is deleted and run again; finished Jobs stay.",
			Fix: "Write the Job so that a step already done is skipped; leave ttlSecondsAfterFinished out, and let it try again.",
		},
		{
			ID: "selector-changes", Title: "selectors stay the same from version to version", Severity: Error,
			Why: "A Deployment's selector cannot be changed: the cluster refuses the upgrade.",
			Fix: "Leave version and app version out of selectors; app.kubernetes.io/name and a component are enough.",
		},
		{
			ID: "name-changes", Title: "names stay the same from version to version", Severity: Warning,
			Why: "An object with a new name is a new object: the old one is deleted, a claim with its data.",
			Fix: "Leave version and app version out of names, and the release's name out of that of the primary Service, which zaentrum.io/primary says.",
		},
		{
			ID: "image-not-pinned", Title: "images are of one version", Severity: Warning,
			Why: "An image without a tag, or with latest, changes without a plan.",
			Fix: "Name a version, such as the chart's appVersion, or a digest.",
		},

		// What objects say of each other.
		{
			ID: "missing-key", Title: "keys that are referred to are there", Severity: Error,
			Why: "A container that takes a key from a Secret or ConfigMap which does not have it never starts; a file that a volume does not have becomes an empty directory.",
			Fix: "Correct the key where it is referred to, or render it; mark the reference optional: true if it may be missing.",
		},
		{
			ID: "pull-secret-type", Title: "images are pulled with Secrets of the type for it", Severity: Warning,
			Why: "Of other types, a Secret under imagePullSecrets is passed over in silence.",
			Fix: "Render it as type: kubernetes.io/dockerconfigjson with the key .dockerconfigjson, which toJson makes of the inputs; or take .Values.zaentrum.imagePullSecrets.",
		},
		{
			ID: "missing-volume", Title: "mounted volumes are there", Severity: Error, Fixed: true,
			Why: "The cluster refuses a pod that mounts a volume it does not have.",
			Fix: "Correct the name, or add the volume to the pod: under the same condition as the mount, if there is one.",
		},
		{
			ID: "volume-unused", Title: "volumes are mounted", Severity: Warning,
			Why: "A volume that no container mounts does nothing, and the pod waits for it all the same.",
			Fix: "Mount it, or remove it; render both under the same condition.",
		},
		{
			ID: "missing-port", Title: "named ports are there", Severity: Error,
			Why: "A port is named in the container that has it: a Service finds none of another name, and a probe looks at no other container.",
			Fix: "Use the name that the container's port has, give it this one, or say the number.",
		},
		{
			ID: "port-differs", Title: "Services lead to ports that containers declare", Severity: Warning,
			Why: "Declaring a port changes nothing, but a Service that leads to another one than those declared hardly reaches what listens.",
			Fix: "Set targetPort to the name of the container's port, or declare the port that it listens on; select only the pods that serve.",
		},
		{
			ID: "service-without-pods", Title: "Services lead to pods", Severity: Error,
			Why: "An addon that cannot be reached at its primary Service is never registered.",
			Fix: "Select the labels of the pod template that serves, or remove a Service that nothing is behind.",
		},
		{
			ID: "claim-shared", Title: "no claim for more pods than can mount it", Severity: Warning,
			Why: "A claim that is ReadWriteOnce is mounted on one node at a time: pods that come to another one never start.",
			Fix: "Let one pod mount it: one replica, and no more in the schema, of one workload; or claim ReadWriteMany; or put the pods together with a required podAffinity.",
		},
		{
			ID: "claim-rollout", Title: "rollouts do not wait for their own claim", Severity: Warning,
			Why: "The new pod cannot mount what the old one holds on another node, and the old one stays until the new one is ready: the update never ends.",
			Fix: "Set strategy: {type: Recreate} on the Deployment.",
		},
		{
			ID: "missing-variable", Title: "variables that are referred to are there", Severity: Warning,
			Why: "$(NAME) is replaced by a variable of the container that was defined before it; otherwise it stays as it is written.",
			Fix: "Define the variable in the container's env, before what refers to it; write $$(NAME) for the text itself.",
		},

		// Against the previous version.
		{
			ID: "input-removed", Title: "inputs of the version before are still there", Severity: Warning,
			Why: "What was given for it is refused or does nothing after the upgrade.",
			Fix: "Keep the input, or say in the release notes what takes its place, and why in .zaelint.yaml.",
		},
		{
			ID: "version-not-raised", Title: "other content has a higher version", Severity: Warning,
			Why: "Whoever has reviewed a version gets that content and no other: what is published again under it waits, and a lower version is no upgrade.",
			Fix: "Raise version in Chart.yaml with every change.",
		},
		{
			ID: "input-newly-required", Title: "an upgrade asks for nothing new", Severity: Warning,
			Why: "An upgrade stops until somebody gives the value.",
			Fix: "Give it a default in values.yaml, or do not require it. A secret has no default: let the operator generate it, or the chart do without it.",
		},
		{
			ID: "immutable-field", Title: "no field changes that cannot be changed", Severity: Error,
			Why: "The cluster refuses the upgrade.",
			Fix: "Keep the field as it was, or give the object a new name.",
		},
		{
			ID: "claim-deleted", Title: "claims of the version before are still there", Severity: Warning,
			Why: "A claim that is no longer rendered is deleted, and with it, depending on the storage class, its data.",
			Fix: "Keep the claim under its name.",
		},

		// The list of exceptions itself.
		{
			ID: "ignore-invalid", Title: ".zaelint.yaml is valid", Severity: Error, Fixed: true,
			Why: "Each entry names a rule and a reason; guardrails that refuse cannot be ignored, since the operator does not.",
			Fix: "Write ignore: [{rule: ID, file: templates/x.yaml, reason: why this is right here}]; file may be left out.",
		},
		{
			ID: "ignore-unused", Title: "every exception is needed", Severity: Warning, Fixed: true,
			Why: "An entry that ignores nothing will hide the next finding.",
			Fix: "Remove the entry from .zaelint.yaml.",
		},
	}
}

// Catalogue are the guardrails and the rules for authors, as one table in report order.
func Catalogue() []Rule {
	var out []Rule
	for _, r := range guard.Rules() {
		one := Rule{
			ID: r.ID, Title: r.Title, Severity: severityOf(r.Level), Why: r.Why, Fix: r.Fix,
			Fixed: r.Level == guard.Refuse, Guardrail: true, Notice: r.Notice && !authorNotices[r.ID],
		}
		if one.Notice {
			one.Severity = Info
		}
		out = append(out, one)
	}
	return append(out, Rules()...)
}

func severityOf(l guard.Level) Severity {
	if l == guard.Refuse {
		return Error
	}
	return Warning
}

// RuleByID finds a rule of the catalogue.
func RuleByID(id string) (Rule, bool) {
	for _, r := range Catalogue() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}
