// Protoc-gen-crd is a plugin of buf that makes the CustomResourceDefinition of JobPolicy
// of the contract: its spec is the message PolicySpec. What the contract does not have
// (names, printer columns, status) stands in jobpolicies.yaml beside this file.
package main

import (
	"bytes"
	_ "embed"
	"fmt"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	specMessage = "jobpolicy.v1.PolicySpec"
	output      = "jobpolicies.yaml"
	head        = "# Made of proto/jobpolicy/v1/options.proto by `make generate`; do not edit.\n"
)

//go:embed jobpolicies.yaml
var envelope []byte

func main() {
	protogen.Options{}.Run(generate)
}

// generate writes the manifest if the request has the message.
func generate(plugin *protogen.Plugin) error {
	plugin.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL)
	for _, file := range plugin.Files {
		for _, message := range file.Messages {
			if !file.Generate || message.Desc.FullName() != specMessage {
				continue
			}
			manifest, err := crd(message)
			if err != nil {
				return err
			}
			_, err = plugin.NewGeneratedFile(output, "").Write(manifest)
			return err
		}
	}
	return fmt.Errorf("no message %s", specMessage)
}

// crd is the manifest whose spec is the message.
func crd(spec *protogen.Message) ([]byte, error) {
	var manifest yaml.Node
	if err := yaml.Unmarshal(envelope, &manifest); err != nil {
		return nil, err
	}
	place := at(manifest.Content[0], "spec", "versions", "schema", "openAPIV3Schema", "properties", "spec")
	if place == nil {
		return nil, fmt.Errorf("%s has no place for the spec", output)
	}
	var words struct{ Description string }
	if err := place.Decode(&words); err != nil {
		return nil, err
	}
	if err := place.Encode(messageSchema(spec, words.Description)); err != nil {
		return nil, err
	}
	text := bytes.NewBufferString(head)
	encoder := yaml.NewEncoder(text)
	encoder.SetIndent(2)
	err := encoder.Encode(&manifest)
	return text.Bytes(), err
}

// at finds a value by the names that lead to it; of a list it takes the first item. nil: there is none.
func at(node *yaml.Node, names ...string) *yaml.Node {
	if node.Kind == yaml.SequenceNode {
		return at(node.Content[0], names...)
	}
	if len(names) == 0 {
		return node
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == names[0] {
			return at(node.Content[i+1], names[1:]...)
		}
	}
	return nil
}
