package jobcheck

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A fieldRule is a line of podFields.
type fieldRule struct {
	elsewhere, required, ranged bool
	low, high                   int64
	most, longest               int
	unique                      []string
	words                       []string
	form                        func(any) string
	// fewest and pointers are for a type: at least how many of these pointers are set. At
	// most one is.
	fewest   int
	pointers []string
}

var fieldRules = readFieldRules()

func readFieldRules() map[string]*fieldRule {
	rules := map[string]*fieldRule{}
	for line := range strings.Lines(podFields) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		r := &fieldRule{}
		for _, word := range words[1:] {
			r.read(word)
		}
		rules[words[0]] = r
	}
	return rules
}

func (r *fieldRule) read(word string) {
	name, value, _ := strings.Cut(word, "=")
	low, high, ranged := strings.Cut(word, "..")
	switch {
	case name == "elsewhere":
		r.elsewhere = true
	case name == "required":
		r.required = true
	case name == "one" || name == "atMostOne":
		if value != "" {
			r.pointers = strings.Split(value, "|")
		}
		if name == "one" {
			r.fewest = 1
		}
	case name == "max":
		r.most, _ = strconv.Atoi(value)
	case name == "length":
		r.longest, _ = strconv.Atoi(value)
	case name == "unique":
		r.unique = append(r.unique, value)
	case ranged:
		r.ranged, r.high = true, math.MaxInt64
		r.low, _ = strconv.ParseInt(low, 10, 64)
		if high != "" {
			r.high, _ = strconv.ParseInt(high, 10, 64)
		}
	case formats[word] != nil:
		r.form = formats[word]
	default:
		r.words = strings.Split(word, "|")
	}
}

// formats are the forms of texts and numbers that podFields names.
var formats = map[string]func(any) string{
	"label":            text(validation.IsDNS1123Label),
	"labelOrEmpty":     text(orEmpty(validation.IsDNS1123Label)),
	"subdomain":        text(validation.IsDNS1123Subdomain),
	"subdomainOrEmpty": text(orEmpty(validation.IsDNS1123Subdomain)),
	"subdomainPrefix":  text(func(s string) []string { return apivalidation.NameIsDNSSubdomain(s, true) }),
	"labelValue":       text(validation.IsValidLabelValue),
	"qualified":        text(validation.IsQualifiedName),
	"qualifiedOrEmpty": text(orEmpty(validation.IsQualifiedName)),
	"envName":          text(validation.IsRelaxedEnvVarName),
	"configKey":        text(validation.IsConfigMapKey),
	"portName":         text(orEmpty(validation.IsValidPortName)),
	"header":           text(validation.IsHTTPHeaderName),
	"csiDriver":        text(csiDriver),
	"search":           text(searchPath),
	"signer":           text(signer),
	"trustBundle":      text(trustBundle),
	"sysctl":           text(sysctl),
	"podResource":      text(podResource),
	"absolute":         text(absolutePath),
	"relative":         text(orEmpty(relativePath)),
	"local":            text(localPath),
	"noDotDot":         text(noDotDot),
	"trimmed":          text(trimmed),
	"ip":               text(ipAddress),
	"id":               id,
	"port":             port,
	"labels":           labelPairs,
	"prefixedKeys":     prefixedKeys,
	"notNegative":      notNegative,
}

// missing reports whether a field has no value.
func (r *fieldRule) missing(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

// problem says what is wrong with a value. given says that an empty text was written.
func (r *fieldRule) problem(v reflect.Value, given bool) string {
	switch v.Kind() {
	case reflect.String:
		if v.String() == "" && !given {
			return ""
		}
		if len(r.words) > 0 && !slices.Contains(r.words, v.String()) {
			return fmt.Sprintf("%q: expected one of %s", v.String(), strings.Join(r.words, ", "))
		}
		if r.longest > 0 && v.Len() > r.longest {
			return fmt.Sprintf("has %d characters; expected at most %d", v.Len(), r.longest)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if r.ranged && (v.Int() < r.low || v.Int() > r.high) {
			return outside(v.Int(), r.low, r.high)
		}
	}
	if r.form == nil {
		return ""
	}
	return r.form(v.Interface())
}

func outside(n, low, high int64) string {
	if high == math.MaxInt64 {
		return fmt.Sprintf("must be %d or more, is %d", low, n)
	}
	return fmt.Sprintf("must be from %d to %d, is %d", low, high, n)
}

// text makes a form of a function that lists what is wrong with a text.
func text(problems func(string) []string) func(any) string {
	return func(v any) string {
		s := reflect.ValueOf(v).String()
		if list := problems(s); len(list) > 0 {
			return fmt.Sprintf("%q: %s", s, list[0])
		}
		return ""
	}
}

func orEmpty(problems func(string) []string) func(string) []string {
	return func(s string) []string {
		if s == "" {
			return nil
		}
		return problems(s)
	}
}

// one is the list of one problem, or of none.
func one(wrong bool, text string) []string {
	if wrong {
		return []string{text}
	}
	return nil
}

func noDotDot(path string) []string {
	return one(slices.Contains(strings.Split(path, "/"), ".."), "must not contain ..")
}

func relativePath(path string) []string {
	return append(one(strings.HasPrefix(path, "/"), "must be a relative path"), noDotDot(path)...)
}

func localPath(path string) []string {
	return append(relativePath(path), one(strings.HasPrefix(path, ".."), "must not start with ..")...)
}

func absolutePath(path string) []string {
	return one(!strings.HasPrefix(path, "/"), "must be an absolute path")
}

func trimmed(s string) []string {
	return one(strings.TrimSpace(s) != s, "must not have spaces before or after it, or no pod can be created")
}

func csiDriver(name string) []string {
	return append(one(len(name) > validation.DNS1123LabelMaxLength, "is too long"), validation.IsDNS1123Subdomain(strings.ToLower(name))...)
}

func searchPath(path string) []string {
	if path == "." {
		return nil
	}
	return validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(path, "."))
}

// signer takes the name of who signs certificates, such as example.com/internal.
func signer(name string) []string {
	domain, path, ok := strings.Cut(name, "/")
	labels := strings.Split(domain, ".")
	bad := func(label string) bool { return len(validation.IsDNS1123Label(label)) > 0 }
	wrong := !ok || len(labels) < 2 || len(domain) > validation.DNS1123SubdomainMaxLength || slices.ContainsFunc(labels, bad)
	return append(one(wrong, "expected a domain and a path, such as example.com/name"), validation.IsDNS1123Subdomain(path)...)
}

// trustBundle takes the name of a ClusterTrustBundle, which begins with that of its signer if it has
// one: example.com:internal:name.
func trustBundle(name string) []string {
	return validation.IsDNS1123Subdomain(name[strings.LastIndex(name, ":")+1:])
}

var sysctlPart = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$`)

// sysctl takes names such as net.core.somaxconn and net/core/somaxconn.
func sysctl(name string) []string {
	parts := strings.Split(strings.ReplaceAll(name, "/", "."), ".")
	bad := slices.ContainsFunc(parts, func(part string) bool { return !sysctlPart.MatchString(part) })
	return one(bad || len(name) > validation.DNS1123SubdomainMaxLength, "expected a name such as net.core.somaxconn")
}

// podResource takes what a container can read of its own resources.
func podResource(name string) []string {
	_, resource, ok := strings.Cut(name, ".")
	known := ok && (resource == "cpu" || resource == "memory" || resource == "ephemeral-storage" || strings.HasPrefix(resource, "hugepages-"))
	return one(!known || !strings.HasPrefix(name, "limits.") && !strings.HasPrefix(name, "requests."), "expected requests. or limits., and then cpu, memory, ephemeral-storage or hugepages-SIZE")
}

func ipAddress(text string) []string {
	return one(len(validation.IsValidIPForLegacyField(nil, text, true, nil)) > 0, "expected an IP address")
}

func id(v any) string {
	return first(validation.IsValidUserID(reflect.ValueOf(v).Int()))
}

func port(v any) string {
	p := v.(intstr.IntOrString)
	if p.Type == intstr.Int {
		return first(validation.IsValidPortNum(p.IntValue()))
	}
	return first(validation.IsValidPortName(p.StrVal))
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// prefixedKeys are annotations whose keys have a domain each.
func prefixedKeys(v any) string {
	annotations := v.(map[string]string)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if list := append(validation.IsQualifiedName(strings.ToLower(key)), one(!strings.Contains(key, "/"), "expected a key such as example.com/name")...); len(list) > 0 {
			return fmt.Sprintf("%q: %s", key, list[0])
		}
	}
	if err := apivalidation.ValidateAnnotationsSize(annotations); err != nil {
		return err.Error()
	}
	return ""
}

func labelPairs(v any) string {
	labels := v.(map[string]string)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if list := validation.IsQualifiedName(key); len(list) > 0 {
			return fmt.Sprintf("%q: %s", key, list[0])
		}
		if list := validation.IsValidLabelValue(labels[key]); len(list) > 0 {
			return fmt.Sprintf("%q: %s", labels[key], list[0])
		}
	}
	return ""
}
