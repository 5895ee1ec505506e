package chart

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// blocks are the code blocks of the guide.
func blocks(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kustomizeDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split("\n"+string(text), "\n```") {
		if i%2 == 1 {
			blocks = append(blocks, part)
		}
	}
	return blocks
}

// block is the only code block of the guide that has the text.
func block(t *testing.T, text string) string {
	t.Helper()
	found := slices.DeleteFunc(blocks(t), func(block string) bool { return !strings.Contains(block, text) })
	if len(found) != 1 {
		t.Fatalf("%d code blocks of the guide have %q, want 1", len(found), text)
	}
	return found[0]
}

// The kustomization of the guide, with its patch, has the objects that the chart renders for the same
// images and the same Prometheus.
func TestGuideLetsPrometheusScrape(t *testing.T) {
	_, rest, _ := strings.Cut(block(t, "cat > kustomization.yaml"), "<<'END'\n")
	kustomization, _, _ := strings.Cut(rest, "\nEND")
	kustomization = strings.ReplaceAll(kustomization, "path/to/deploy/kubernetes", "..") + block(t, "\npatches:")
	overlay := map[string]any{}
	if err := yaml.Unmarshal([]byte(kustomization), &overlay); err != nil {
		t.Fatal(err)
	}
	prometheus := map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "monitoring"}}}
	values := map[string]any{
		"image":         map[string]any{"repository": "REGISTRY", "tag": "TAG"},
		"networkPolicy": map[string]any{"enabled": true, "metricsClients": []any{prometheus}},
	}
	built := byKey(t)(Kustomize(writeOverlay(t, overlay)))
	delete(built, "Namespace /"+releaseNamespace)
	rendered := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: values}))
	forgetVersions(built)
	forgetVersions(rendered)
	if diff := cmp.Diff(rendered, built); diff != "" {
		t.Errorf("objects differ (-helm +kustomize):\n%s", diff)
	}
}

// Whoever looks for the name of an alert finds it in the guide, with what to do. The guide names no other alerts.
func TestGuideSaysWhatToDoAboutEachAlert(t *testing.T) {
	alerts, err := os.ReadFile(filepath.Join(chartDir, "files/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(kustomizeDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "\n### When an alert fires\n")
	table, _, _ = strings.Cut(table, "\n#")
	var have, want []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 1 {
			have = append(have, regexp.MustCompile(`Jobpolicy\w+`).FindAllString(cells[1], -1)...)
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(string(alerts), -1) {
		want = append(want, match[1])
	}
	slices.Sort(have)
	slices.Sort(want)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("alerts (-alerts.yaml +guide):\n%s", diff)
	}
}

// Whoever sees a metric of this project finds it in the guide, in the page for operators, or in an alert or the dashboard.
func TestEachMetricIsTold(t *testing.T) {
	told := ""
	for _, file := range []string{"README.md", "../../docs/operate.md", "../chart/jobpolicy/files/alerts.yaml", "../chart/jobpolicy/files/dashboard.json"} {
		text, err := os.ReadFile(filepath.Join(kustomizeDir, file))
		if err != nil {
			t.Fatal(err)
		}
		told += string(text)
	}
	names := map[string]bool{}
	for _, module := range []string{"engine", "executor", "services"} {
		err := filepath.WalkDir(filepath.Join(kustomizeDir, "../..", module), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, literal := range regexp.MustCompile(`"jobpolicy_\w+"`).FindAllString(string(source), -1) {
				names[strings.Trim(literal, `"`)] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(names) < 20 {
		t.Errorf("found only %d names of metrics in the code", len(names))
	}
	for name := range names {
		if !strings.Contains(told, name) {
			t.Errorf("no page tells %s", name)
		}
	}
}

// To leave cert-manager and to turn to it, the guide deletes every Secret that cert-manager writes, the
// authority's first; and its selector finds every Certificate and Issuer.
func TestGuideDeletesWhatCertManagerHas(t *testing.T) {
	values := map[string]any{"certificates": map[string]any{"mode": "certManager"}}
	var want []string
	for key, object := range byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: values})) {
		if !strings.HasPrefix(object["apiVersion"].(string), "cert-manager.io/") {
			continue
		}
		if labels := object["metadata"].(map[string]any)["labels"].(map[string]any); labels["app.kubernetes.io/instance"] != releaseName {
			t.Errorf("%s has the labels %v", key, labels)
		}
		if object["kind"] == "Certificate" {
			want = append(want, object["spec"].(map[string]any)["secretName"].(string))
		}
	}
	slices.Sort(want) // the authority's is the first
	for _, mode := range []string{"selfManaged", "certManager"} {
		var deleted []string
		for line := range strings.Lines(block(t, "certificates.mode="+mode)) {
			if _, names, ok := strings.Cut(line, " delete secrets --ignore-not-found "); ok {
				deleted = append(deleted, strings.Fields(names)...)
			}
		}
		if diff := cmp.Diff(want, deleted); diff != "" {
			t.Errorf("Secrets deleted for %s (-chart +guide):\n%s", mode, diff)
		}
	}
	if !strings.Contains(block(t, "certificates.mode=selfManaged"), "delete certificates.cert-manager.io,issuers.cert-manager.io -l app.kubernetes.io/instance="+releaseName+"\n") {
		t.Error("the guide does not delete the Certificates and Issuers of the release")
	}
}
