package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// kubernetesPin is the line of a go.mod that says which Kubernetes it builds.
var kubernetesPin = regexp.MustCompile(`k8s\.io/kubernetes v1\.(\d+)\.\d+`)

// The chart accepts the minor versions whose servers can be built for the tests, and no others.
func TestTheChartAcceptsTheTestedMinors(t *testing.T) {
	files, err := filepath.Glob("../../deploy/local/olderminors/*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	minors := map[int]bool{}
	first, last := 1<<30, 0
	for _, file := range append(files, "../../deploy/local/go.mod") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pin := kubernetesPin.FindSubmatch(text)
		if pin == nil {
			t.Fatalf("%s requires no k8s.io/kubernetes", file)
		}
		minor, err := strconv.Atoi(string(pin[1]))
		if err != nil {
			t.Fatal(err)
		}
		if dir := filepath.Base(filepath.Dir(file)); dir != "local" && dir != fmt.Sprintf("1.%d", minor) {
			t.Errorf("%s is for v1.%d", file, minor)
		}
		minors[minor], first, last = true, min(first, minor), max(last, minor)
	}
	for minor := first; minor <= last; minor++ {
		if !minors[minor] {
			t.Errorf("v1.%d is not tested, and lies between others that are", minor)
		}
	}
	chart, err := os.ReadFile(chartDir + "/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("kubeVersion: \">=1.%d.0-0 <1.%d.0-0\"", first, last+1)
	if !regexp.MustCompile("(?m)^" + regexp.QuoteMeta(want) + "$").Match(chart) {
		t.Errorf("Chart.yaml does not say %s", want)
	}
}
