# The same image as `make image` writes without an engine.
ARG GO_VERSION=1.26.8
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
COPY apis/ apis/
COPY controllers/ controllers/
RUN CGO_ENABLED=0 GOOS=linux GOARCH=${TARGETARCH} \
    go build -trimpath -buildvcs=false -ldflags='-s -w' -o /stateful-operator .

FROM scratch
COPY --from=build /stateful-operator /stateful-operator
USER 65532:65532
ENTRYPOINT ["/stateful-operator"]
