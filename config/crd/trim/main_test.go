package main

import (
	"fmt"
	"regexp"
	"testing"
)

const untrimmed = `kind: CustomResourceDefinition
spec:
  versions:
  - schema:
      openAPIV3Schema:
        description: the kind
        properties:
          spec:
            description: what is wanted
            properties:
              replicas:
                default: 3
                description: how many
                type: integer
              template:
                description: the pods
                properties:
                  description:
                    description: a field of that name
                    type: string
                  spec:
                    description: a pod
                    items:
                      description: deep
                      properties:
                        default:
                          default: no key
                          type: string
                        protocol:
                          default: TCP
                          type: string
                        secret:
                          default: ""
                          type: string
                      type: object
                    type: array
                    x-kubernetes-list-map-keys:
                    - protocol
                type: object
            type: object
`

const trimmed = `---
kind: CustomResourceDefinition
spec:
  versions:
  - schema:
      openAPIV3Schema:
        description: the kind
        properties:
          spec:
            description: what is wanted
            properties:
              replicas:
                default: 3
                description: how many
                type: integer
              template:
                description: the pods
                properties:
                  description:
                    type: string
                  spec:
                    items:
                      properties:
                        default:
                          type: string
                        protocol:
                          default: TCP
                          type: string
                        secret:
                          default: ""
                          type: string
                      type: object
                    type: array
                    x-kubernetes-list-map-keys:
                    - protocol
                type: object
            type: object
`

func TestDescriptionsAndDefaultsInsideEmbeddedTypesGo(t *testing.T) {
	for name, input := range map[string]string{"a generated file": untrimmed, "a trimmed file": trimmed} {
		t.Run(name, func(t *testing.T) {
			got, err := trim([]byte(input))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != trimmed {
				t.Errorf("got:\n%s\nwant:\n%s", got, trimmed)
			}
		})
	}
}

const unbounded = `kind: CustomResourceDefinition
metadata:
  name: %s
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              selector:
                properties:
                  matchExpressions:
                    items:
                      properties:
                        key:
                          type: string
                        operator:
                          type: string
                        values:
                          items:
                            type: string
                          type: array
                      type: object
                    type: array
                  matchLabels:
                    additionalProperties:
                      type: string
                    type: object
                type: object
            type: object
`

const boundedSelector = `---
kind: CustomResourceDefinition
metadata:
  name: statefulsingletons.apps.openshift.statefulsingleton.com
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              selector:
                properties:
                  matchExpressions:
                    items:
                      properties:
                        key:
                          maxLength: 317
                          type: string
                        operator:
                          maxLength: 63
                          type: string
                        values:
                          items:
                            maxLength: 63
                            type: string
                          maxItems: 32
                          type: array
                      type: object
                    maxItems: 32
                    type: array
                  matchLabels:
                    additionalProperties:
                      maxLength: 63
                      type: string
                    maxProperties: 32
                    type: object
                type: object
            type: object
`

func TestSelectorsAreBounded(t *testing.T) {
	for name, want := range map[string]string{
		"statefulsingletons.apps.openshift.statefulsingleton.com": boundedSelector,
		"strangers.example.com":                                   "---\n" + fmt.Sprintf(unbounded, "strangers.example.com"),
	} {
		got, err := trim(fmt.Appendf(nil, unbounded, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

// 30 characters took all memory of who decoded them.
func TestQuantitiesAreBounded(t *testing.T) {
	got, err := trim([]byte("storage:\n  pattern: " + anyQuantity + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "---\nstorage:\n  maxLength: 64\n  pattern: " + quantity + "\n"; string(got) != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	for text, taken := range map[string]bool{"1Gi": true, "1.5": true, "-2e+10": true, "1e3": true, "12345678901234567890e2000000000": false, "1e100": false, "1e.5": false} {
		if is := regexp.MustCompile(quantity).MatchString(text); is != taken {
			t.Errorf("%s is taken: %v", text, is)
		}
	}
}
