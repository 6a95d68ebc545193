package release

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeComponents writes a CycloneDX list of the modules in the programs of the release, from the
// programs' build information.
func (r *Release) writeComponents(context.Context, images) error {
	modules, toolchain := map[string]string{}, ""
	for _, program := range r.programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return fmt.Errorf("read the components of %s: %w", filepath.Base(program), err)
		}
		toolchain = info.GoVersion
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			modules[module.Path] = module.Version
		}
	}
	modules["std"] = strings.TrimPrefix(toolchain, "go")
	var text bytes.Buffer
	list := r.listOf(modules)
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(list, cyclonedx.SpecVersion1_6); err != nil {
		return err
	}
	return r.write("stateful-operator-"+r.Version+".cdx.json", text.Bytes())
}

func (r *Release) listOf(modules map[string]string) *cyclonedx.BOM {
	list := cyclonedx.NewBOM()
	list.SerialNumber = r.serial(modules)
	self := cyclonedx.Component{
		BOMRef: "pkg:golang/github.com/stateful-operator/stateful-operator@v" + r.Version,
		Type:   cyclonedx.ComponentTypeApplication, Name: "stateful-operator", Version: r.Version,
		PackageURL: "pkg:golang/github.com/stateful-operator/stateful-operator@v" + r.Version,
		Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
	}
	list.Metadata = &cyclonedx.Metadata{Timestamp: r.Time.UTC().Format(time.RFC3339), Component: &self}
	components, needed := []cyclonedx.Component{}, []string{}
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		url := "pkg:golang/" + module + "@" + modules[module]
		needed = append(needed, url)
		components = append(components, cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary,
			Name: module, Version: modules[module], PackageURL: url, Scope: cyclonedx.ScopeRequired})
	}
	list.Components = &components
	list.Dependencies = &[]cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &needed}}
	return list
}

// serial returns a unique ID of the list: a UUID of RFC 9562 (version 8), derived from the list's
// content.
func (r *Release) serial(modules map[string]string) string {
	sum := sha256.New()
	fmt.Fprintln(sum, cmp.Or(r.Source, "local"), r.Version, r.Commit)
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		fmt.Fprintln(sum, module, modules[module])
	}
	id := sum.Sum(nil)[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
