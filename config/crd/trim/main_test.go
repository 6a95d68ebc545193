package main

import "testing"

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
