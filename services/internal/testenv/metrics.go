package testenv

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A Metric is one series of a family.
type Metric struct {
	*dto.Metric
	Labels map[string]string
}

// Metrics returns the series of the family with that name.
func Metrics(t testing.TB, g prometheus.Gatherer, name string) []Metric {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []Metric
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			found = append(found, Metric{m, labels})
		}
	}
	return found
}

// Exemplars are the labels of exemplars of a histogram, as name=value.
func (m Metric) Exemplars() []string {
	var found []string
	for _, bucket := range m.GetHistogram().GetBucket() {
		for _, l := range bucket.GetExemplar().GetLabel() {
			found = append(found, l.GetName()+"="+l.GetValue())
		}
	}
	return found
}
