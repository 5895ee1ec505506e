package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const dashboardFile = chartDir + "/files/dashboard.json"

// A dashboard is what the tests read of Grafana's model of one.
type dashboard struct {
	UID           string `json:"uid"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               map[string]string
	GridPos                  struct{ X, Y, W, H int } `json:"gridPos"`
	FieldConfig              struct {
		Defaults struct{ Unit string }
	} `json:"fieldConfig"`
	Targets []struct {
		RefID        string `json:"refId"`
		Datasource   map[string]string
		Expr         string
		LegendFormat string `json:"legendFormat"`
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	if len(d.Panels) == 0 {
		t.Fatalf("%s has no panels", dashboardFile)
	}
	return d
}

// Grafana imports the file, and each of its panels explains itself.
func TestDashboardPanels(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.SchemaVersion < 38 {
		t.Errorf("uid %q, schemaVersion %d: want a uid, and the schema of Grafana 10 (38) or later", d.UID, d.SchemaVersion)
	}
	ids := map[int]string{}
	for _, p := range d.Panels {
		if other, taken := ids[p.ID]; taken || p.ID == 0 {
			t.Errorf("panel %q has id %d, as %q has: want one of its own", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		if p.Title == "" {
			t.Errorf("panel %d has no title", p.ID)
		}
		if p.Type == "row" {
			continue
		}
		if p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q has unit %q and %d targets: want a unit and a target", p.Title, p.FieldConfig.Defaults.Unit, len(p.Targets))
		}
		if !strings.HasSuffix(p.Description, ".") || strings.Count(p.Description, ". ") > 0 {
			t.Errorf("panel %q has the description %q: want one sentence", p.Title, p.Description)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.LegendFormat == "" {
				t.Errorf("panel %q: target %q has legend %q: want a refId of its own and a legend", p.Title, target.RefID, target.LegendFormat)
			}
			refs[target.RefID] = true
		}
	}
}

// No panel covers another, and all fit into the 24 columns of the page.
func TestDashboardLayout(t *testing.T) {
	taken := map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		g := p.GridPos
		if g.W <= 0 || g.H <= 0 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("panel %q is at %+v: want it inside of 24 columns", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q both are at column %d, line %d", other, p.Title, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// Every query is PromQL, asks for the chosen data source and namespaces, and has
// the labels that its legend names.
func TestDashboardQueries(t *testing.T) {
	source := map[string]string{"type": "prometheus", "uid": "${datasource}"}
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" {
			continue
		}
		if diff := cmp.Diff(source, p.Datasource); diff != "" {
			t.Errorf("panel %q: data source (-want +got):\n%s", p.Title, diff)
		}
		for _, target := range p.Targets {
			at := fmt.Sprintf("panel %q, target %s", p.Title, target.RefID)
			if diff := cmp.Diff(source, target.Datasource); diff != "" {
				t.Errorf("%s: data source (-want +got):\n%s", at, diff)
			}
			expr := parse(t, at, target.Expr)
			checkSelectors(t, at, expr, `job="jobpolicy"`, `namespace=~"$namespace"`)
			for _, label := range legendLabels(target.LegendFormat) {
				if grouped := grouping(expr); !slices.Contains(grouped, label) {
					t.Errorf("%s: the legend names %s, and the result has the labels %v", at, label, grouped)
				}
			}
		}
	}
}

// The variables of the dashboard are those that its queries use.
func TestDashboardVariables(t *testing.T) {
	var names []string
	for _, v := range readDashboard(t).Templating.List {
		names = append(names, v.Name)
		if v.Type != "query" {
			continue
		}
		call := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Definition)
		if call == nil || call[2] != v.Name {
			t.Fatalf("variable %s is %q: want label_values(…, %s)", v.Name, v.Definition, v.Name)
		}
		checkSelectors(t, "variable "+v.Name, parse(t, v.Name, call[1]), `job="jobpolicy"`)
	}
	if diff := cmp.Diff([]string{"datasource", "namespace"}, names); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// The alerts select what the PodMonitor makes, too.
func TestAlertQueries(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "files/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) == 0 || len(file.Groups[0].Rules) == 0 {
		t.Fatal("there are no alerts")
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			checkSelectors(t, rule.Alert, parse(t, rule.Alert, rule.Expr), `job="jobpolicy"`)
		}
	}
}

// The job that alerts and dashboard select is the one that the PodMonitor gives, also where the chart is a subchart
// with an alias, which then is its name.
func TestPodMonitorNamesTheJob(t *testing.T) {
	aliased := t.TempDir()
	if err := os.CopyFS(aliased, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(aliased, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^name: .*$`).ReplaceAll(text, []byte("name: batch"))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"port": "http", "relabelings": []any{map[string]any{"targetLabel": "job", "replacement": "jobpolicy"}}}}
	for dir, name := range map[string]string{chartDir: "jobpolicy", aliased: "jobpolicy-batch"} {
		values := map[string]any{"monitoring": map[string]any{"podMonitor": true}}
		objects := byKey(t)(Helm(dir, Release{Name: releaseName, Namespace: releaseNamespace, Values: values}))
		spec, _ := objects["PodMonitor "+releaseNamespace+"/"+name]["spec"].(map[string]any)
		if diff := cmp.Diff(want, spec["podMetricsEndpoints"]); diff != "" {
			t.Errorf("endpoints of the PodMonitor %s (-want +got):\n%s", name, diff)
		}
	}
}

// parse reads a query as Grafana sends it: with an interval in place of its variable.
func parse(t *testing.T, at, query string) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(query, "$__rate_interval", "5m"))
	if err != nil {
		t.Fatalf("%s: %q is no PromQL: %v", at, query, err)
	}
	return expr
}

func checkSelectors(t *testing.T, at string, expr parser.Expr, want ...string) {
	t.Helper()
	selectors := parser.ExtractSelectors(expr)
	if len(selectors) == 0 {
		t.Errorf("%s: %s selects no metric", at, expr)
	}
	for _, matchers := range selectors {
		var have []string
		for _, m := range matchers {
			have = append(have, m.String())
		}
		for _, matcher := range want {
			if !slices.Contains(have, matcher) {
				t.Errorf("%s: the selector %v has no %s", at, have, matcher)
			}
		}
	}
}

// grouping returns the labels that the outermost aggregation keeps.
func grouping(expr parser.Expr) []string {
	var labels []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok && labels == nil {
			labels = aggregate.Grouping
		}
		return nil
	})
	return labels
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

func legendLabels(legend string) []string {
	var labels []string
	for _, match := range legendLabel.FindAllStringSubmatch(legend, -1) {
		labels = append(labels, match[1])
	}
	return labels
}

// Both ways of installing carry the file as it is, and name it for Grafana's
// sidecar; whoever has a sidecar that selects otherwise says so.
func TestDashboardIsRendered(t *testing.T) {
	file, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	monitoring := map[string]any{"dashboard": true}
	labelled := map[string]any{"dashboard": true, "labels": map[string]any{"grafana_dashboard": "jobs", "team": "batch"}}
	overlay := map[string]any{"resources": []string{"../embedded"}, "components": []string{"../components/monitoring"}}
	helm := func(values map[string]any) map[string]Object {
		release := Release{Name: releaseName, Namespace: releaseNamespace, Values: map[string]any{"monitoring": values}}
		return byKey(t)(Helm(chartDir, release))
	}
	for name, tc := range map[string]struct {
		objects map[string]Object
		label   string
	}{
		"helm":      {helm(monitoring), "1"},
		"kustomize": {byKey(t)(Kustomize(writeOverlay(t, overlay))), "1"},
		"own label": {helm(labelled), "jobs"},
	} {
		object := tc.objects["ConfigMap "+releaseNamespace+"/jobpolicy-dashboard"]
		if object == nil {
			t.Errorf("%s: there is no ConfigMap jobpolicy-dashboard", name)
			continue
		}
		if diff := cmp.Diff(map[string]any{"jobpolicy.json": string(file)}, object["data"]); diff != "" {
			t.Errorf("%s: data (-file +rendered):\n%s", name, diff)
		}
		labels := object["metadata"].(map[string]any)["labels"].(map[string]any)
		if labels["grafana_dashboard"] != tc.label {
			t.Errorf("%s: the label grafana_dashboard is %v, want %q", name, labels["grafana_dashboard"], tc.label)
		}
	}
	if helm(map[string]any{})["ConfigMap "+releaseNamespace+"/jobpolicy-dashboard"] != nil {
		t.Error("the dashboard is there although nobody asked for it")
	}
}
