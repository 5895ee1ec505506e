package specs

import (
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// Spec is one end-to-end spec.
type Spec struct {
	// Text identifies the spec: all its texts and its labels in brackets, as Ginkgo prints them.
	Text string
	// Conformance: a cluster must pass it to be called Kubernetes.
	Conformance bool
	// Serial: it must not run beside another spec.
	Serial bool
	// Gates lists the feature gates that it needs and that are off by default.
	Gates []string
}

// How upstream labels what a Spec tells of it.
const (
	labelConformance  = "Conformance"
	labelSerial       = "Serial"
	labelOffByDefault = "Feature:OffByDefault"
	prefixGate        = "FeatureGate:"
)

var labels = regexp.MustCompile(` \[[^\]]*\]`)

// Name is the spec's text without labels, for people: "Job should delete a job".
func (s Spec) Name() string {
	return labels.ReplaceAllString(strings.TrimPrefix(s.Text, "[sig-apps] "), "")
}

// ofJobs matches the specs that are about the three controllers.
var ofJobs = regexp.MustCompile(`^\[sig-apps\] (Job|CronJob|TTLAfterFinished) `)

// FromReport takes the specs of the three controllers from Ginkgo's preview of a suite, in its order.
func FromReport(preview types.Report) []Spec {
	var found []Spec
	for _, r := range preview.SpecReports {
		if r.LeafNodeType != types.NodeTypeIt || !ofJobs.MatchString(r.FullText()) {
			continue
		}
		found = append(found, fromLabels(r.FullText(), r.Labels()))
	}
	return found
}

func fromLabels(text string, labels []string) Spec {
	spec := Spec{
		Text:        text,
		Conformance: slices.Contains(labels, labelConformance),
		Serial:      slices.Contains(labels, labelSerial),
	}
	if !slices.Contains(labels, labelOffByDefault) {
		return spec
	}
	for _, l := range labels {
		if gate, ok := strings.CutPrefix(l, prefixGate); ok {
			spec.Gates = append(spec.Gates, gate)
		}
	}
	return spec
}
