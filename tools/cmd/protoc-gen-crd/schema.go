package main

import (
	"math"
	"regexp"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// A schema is an OpenAPI schema as a CustomResourceDefinition has it.
type schema struct {
	Description string             `yaml:"description,omitempty"`
	Type        string             `yaml:"type"`
	Format      string             `yaml:"format,omitempty"`
	Enum        []string           `yaml:"enum,omitempty"`
	Minimum     *int64             `yaml:"minimum,omitempty"`
	Maximum     *int64             `yaml:"maximum,omitempty"`
	MinLength   *int64             `yaml:"minLength,omitempty"`
	MaxLength   *int64             `yaml:"maxLength,omitempty"`
	MinItems    *int64             `yaml:"minItems,omitempty"`
	MaxItems    *int64             `yaml:"maxItems,omitempty"`
	ListType    string             `yaml:"x-kubernetes-list-type,omitempty"`
	Items       *schema            `yaml:"items,omitempty"`
	Required    []string           `yaml:"required,omitempty"`
	Properties  map[string]*schema `yaml:"properties,omitempty"`
	Rules       []rule             `yaml:"x-kubernetes-validations,omitempty"`
}

// A rule is an expression that the API server evaluates.
type rule struct {
	Rule      string `yaml:"rule"`
	Message   string `yaml:"message"`
	FieldPath string `yaml:"fieldPath"`
}

func messageSchema(message *protogen.Message, text string) *schema {
	s := &schema{Description: text, Type: "object", Properties: map[string]*schema{}}
	for _, field := range message.Fields {
		s.Properties[field.Desc.JSONName()] = fieldSchema(field)
		if options.LimitsOf(field.Desc).Required {
			s.Required = append(s.Required, field.Desc.JSONName())
		}
	}
	rules, _ := proto.GetExtension(message.Desc.Options(), jobpolicyv1.E_Rules).([]*jobpolicyv1.FieldRule)
	for _, r := range rules {
		s.Rules = append(s.Rules, rule{r.GetRule(), r.GetMessage(), "." + r.GetField()})
	}
	return s
}

func fieldSchema(field *protogen.Field) *schema {
	text, limits := description(field.Comments), options.LimitsOf(field.Desc)
	if field.Enum != nil {
		text += enumDescription(field.Enum)
	}
	if !field.Desc.IsList() {
		return valueSchema(field, text, limits)
	}
	return &schema{
		Description: text, Type: "array", Items: valueSchema(field, "", *limits.Items), ListType: "atomic",
		MinItems: finite(limits.Min), MaxItems: finite(limits.Max),
	}
}

// valueSchema is the schema of a field's value; of a list, of one item.
func valueSchema(field *protogen.Field, text string, limits options.Limits) *schema {
	s := &schema{Description: text}
	switch kind := field.Desc.Kind(); kind {
	case protoreflect.MessageKind:
		return messageSchema(field.Message, text)
	case protoreflect.EnumKind:
		s.Type, s.Enum = "string", options.EnumNames(field.Desc.Enum())
	case protoreflect.StringKind:
		// The schema counts characters, the contract bytes: the executor finds what lies between.
		s.Type, s.MinLength, s.MaxLength = "string", finite(limits.Min), finite(limits.Max)
	case protoreflect.BoolKind:
		s.Type = "boolean"
	case protoreflect.DoubleKind:
		s.Type, s.Minimum, s.Maximum = "number", finite(limits.Min), finite(limits.Max)
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		s.Type, s.Format, s.Minimum, s.Maximum = "integer", kind.String(), finite(limits.Min), finite(limits.Max)
	default:
		panic("no schema for fields of type " + kind.String() + ": " + string(field.Desc.FullName()))
	}
	return s
}

// finite is a limit, or nil if there is none.
func finite(limit float64) *int64 {
	if math.IsInf(limit, 0) {
		return nil
	}
	n := int64(limit)
	return &n
}

// contractName is a field as the contract names it.
var contractName = regexp.MustCompile(`\b[a-z]+(_[a-z0-9]+)+\b`)

// forImplementers are remarks that mean nothing to a reader of kubectl explain.
var forImplementers = regexp.MustCompile(` \(invariants? [^)]*\)`)

// description is a comment without its line breaks, with the names of fields in JSON. Paragraphs stay.
func description(comments protogen.CommentSet) string {
	var paragraphs []string
	for paragraph := range strings.SplitSeq(string(comments.Leading), "\n\n") {
		paragraphs = append(paragraphs, strings.Join(strings.Fields(paragraph), " "))
	}
	text := forImplementers.ReplaceAllString(strings.Join(paragraphs, "\n\n"), "")
	return contractName.ReplaceAllStringFunc(text, jsonName)
}

func jsonName(name string) string {
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}

// enumDescription says what each value of an enum means.
func enumDescription(enum *protogen.Enum) string {
	var text strings.Builder
	for _, value := range enum.Values[1:] {
		text.WriteString("\n" + options.EnumName(enum.Desc, value.Desc))
		if meaning := description(value.Comments); meaning != "" {
			text.WriteString(": " + meaning)
		}
	}
	return text.String()
}
