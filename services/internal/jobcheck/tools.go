package jobcheck

import (
	"fmt"
	"slices"
	"strings"
)

// A tool applies manifests. It is known by a mark: the beginning of a label or annotation, as name=value.
type tool struct {
	mark string
	// afterTTL is what it makes of a Job that is deleted by its time to live.
	afterTTL string
	// changed is what becomes of a Job whose template has changed; empty: it is created anew.
	changed string
}

const (
	immutable  = ", and the API server refuses a changed template (field is immutable): "
	helmAgain  = "; Helm creates it again at the next upgrade"
	helmChange = "Helm applies the Job with each upgrade" + immutable + "make it a hook (annotation helm.sh/hook), or let its name change with the template"
)

// tools are in this order, because a mark may be the beginning of others.
var tools = []tool{
	{"argocd.argoproj.io/hook", "; Argo CD deletes a hook itself (argocd.argoproj.io/hook-delete-policy), and some of its versions wait for ever for one that is gone", ""},
	{"helm.sh/hook", "; Helm deletes a hook itself: as helm.sh/hook-delete-policy says, or else before it creates the next one", ""},
	{
		"argocd.argoproj.io/", "; Argo CD then shows the Job as OutOfSync, and creates it again at the next sync",
		"Argo CD applies the Job with each sync" + immutable + "make it a hook (annotation argocd.argoproj.io/hook), or set argocd.argoproj.io/sync-options: Force=true,Replace=true",
	},
	{"helm.sh/", helmAgain, helmChange},
	{"meta.helm.sh/", helmAgain, helmChange},
	{"app.kubernetes.io/managed-by=Helm", helmAgain, helmChange},
	{"kustomize.toolkit.fluxcd.io/force=enabled", "; Flux creates it again when it reconciles next", ""},
	{
		"kustomize.toolkit.fluxcd.io/", "; Flux creates it again when it reconciles next",
		"Flux applies the Job when it reconciles" + immutable + "set the annotation kustomize.toolkit.fluxcd.io/force: enabled, or let its name change with the template",
	},
}

// appliedBy is the tool that applies the manifest of a Job; its zero value if the manifest names none.
func (s *subject) appliedBy() tool {
	if s.cron != nil {
		return tool{}
	}
	for _, t := range tools {
		for _, marks := range []map[string]string{s.object.Annotations, s.object.Labels} {
			for name, value := range marks {
				if strings.HasPrefix(name+"="+value, t.mark) {
					return t
				}
			}
		}
	}
	return tool{}
}

// keptBy says what a tool that applies the manifest makes of a Job that is deleted by its time to live; empty
// if the manifest names no such tool.
func (s *subject) keptBy() string { return s.appliedBy().afterTTL }

func changedTemplate(s *subject) {
	options := s.object.Annotations["argocd.argoproj.io/sync-options"]
	if text := s.appliedBy().changed; text != "" && !strings.Contains(options, "Force=true") {
		s.find(Note, "template", text)
	}
}

// An injector adds a container to pods that ask for it by a label or annotation. Newer versions of a mesh may do no harm:
// they inject it as an init container.
type injector struct {
	name, value string
	// unless are annotations of which each, if it is true, keeps the container from running until it is stopped.
	unless   []string
	severity Severity
	text     string
}

// outlives is what an injected container does to a Job.
const outlives = "an injected container that runs until it is stopped keeps the Job open for ever: "

var injectors = []injector{
	{
		"vault.hashicorp.com/agent-inject", "true",
		[]string{"vault.hashicorp.com/agent-pre-populate-only"},
		Warning,
		outlives + `set vault.hashicorp.com/agent-pre-populate-only: "true", so that Vault's agent runs as an init container only`,
	},
	{
		"sidecar.istio.io/inject", "true",
		[]string{"sidecar.istio.io/nativeSidecar"},
		Note,
		outlives + `set sidecar.istio.io/nativeSidecar: "true", so that Istio's proxy is an init container with restartPolicy Always, or sidecar.istio.io/inject: "false"`,
	},
	{
		"linkerd.io/inject", "enabled",
		[]string{"config.beta.linkerd.io/proxy-enable-native-sidecar", "config.alpha.linkerd.io/proxy-enable-native-sidecar"},
		Note,
		outlives + `set config.beta.linkerd.io/proxy-enable-native-sidecar: "true", so that Linkerd's proxy is an init container with restartPolicy Always, or linkerd.io/inject: disabled`,
	},
}

// injected finds pods that ask for a container that is not in the template.
func (s *subject) injected() {
	template := &s.spec.Template
	for _, i := range injectors {
		if slices.ContainsFunc(i.unless, func(name string) bool { return template.Annotations[name] == "true" }) {
			continue
		}
		for field, marks := range map[string]map[string]string{"annotations": template.Annotations, "labels": template.Labels} { // findings are sorted by line
			if marks[i.name] == i.value {
				s.find(i.severity, fmt.Sprintf("template.metadata.%s[%s]", field, i.name), i.text)
			}
		}
	}
}
