package guard

import (
	"zaentrum.io/zae/api/v1alpha1"
)

// Rules about the chart itself, and about the primary Service that its annotation names.

// one is a finding of the chart, which needs no place.
func one(broken bool, what string) []hit {
	if !broken {
		return nil
	}
	return []hit{{what: what}}
}

func chartAPIVersion(s *scope) []hit {
	return one(s.Chart.APIVersion != "v2", "apiVersion must be v2")
}

func chartType(s *scope) []hit {
	return one(s.Chart.Type != "" && s.Chart.Type != "application", "type must be application, or left out")
}

func chartAddon(s *scope) []hit {
	return one(s.Chart.Annotations[v1alpha1.ChartAnnotationAddon] != "true",
		`annotation `+v1alpha1.ChartAnnotationAddon+` must be "true"`)
}

func chartPrimary(s *scope) []hit {
	return one(s.primary() == "", "annotation "+v1alpha1.ChartAnnotationPrimary+" is missing")
}

func chartCRDs(s *scope) []hit {
	var hits []hit
	for _, path := range s.Chart.CRDs {
		hits = append(hits, hit{path: clean(path, maxName), what: "crds directory not allowed"})
	}
	return hits
}

func primaryService(s *scope) []hit {
	name := s.primary()
	if s.NotRendered {
		return nil
	}
	return one(name != "" && !s.services[name],
		"no Service named "+clean(name, maxName)+", which annotation "+v1alpha1.ChartAnnotationPrimary+" names")
}

// primaryPort wants port 80 over TCP, which is what http://<primary> reaches.
func primaryPort(s *scope, o *object) []hit {
	if s.primary() == "" || o.id.Name != s.primary() {
		return nil
	}
	ports := o.root.at("spec", "ports")
	for _, p := range ports.items() {
		if p.at("port").raw == int64(80) && (p.at("protocol").blank() || p.at("protocol").is("TCP")) {
			return nil
		}
	}
	return []hit{ports.hit("the primary Service has no port 80")}
}

func (s *scope) primary() string {
	return s.Chart.Annotations[v1alpha1.ChartAnnotationPrimary]
}
