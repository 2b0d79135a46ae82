# Documents, the demonstration page, install, archives and packages. Included by the Makefile of the root.

## make docs          writes what commands print, and the tables, into the documents
docs: all
	@$(PYTHON) tools/opdoc.py --write
	@$(PYTHON) test/run --bless docs/

## make picture       docs/report.svg, the picture of README.md, from a report in chromium
picture: all
	@$(PYTHON) tools/picture.py

## make demo          a page with the built-in model as WebAssembly that reads digits as you draw them: build/demo/digits.html (needs clang and lld)
demo: $(BUILD)/demo/digits.html
	@echo 'open $(abspath $<) in a browser'
$(BUILD)/demo/digits.html: $(BUILD)/ingot tools/demo/page.html tools/demo/page.mjs models/digits.onnx
	@mkdir -p $(@D)
	$(Q)$(BUILD)/ingot build models/digits.onnx -d batch=1 -o $(@D)/digits.wasm
	$(Q){ cat tools/demo/page.html $(@D)/digits.mjs; printf 'const BYTES = "'; base64 -w0 $(@D)/digits.wasm; echo '";'; cat tools/demo/page.mjs; echo '</script>'; } >$@.tmp
	$(Q)mv $@.tmp $@

# ---- install ----

PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
VERSION  = $(shell sed -n 's/^\#define INGOT_VERSION *"\(.*\)"/\1/p' src/ingot.h)

$(BUILD)/ingot.pc: src/ingot.h tools/package.mk
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))' 'includedir=$${prefix}/include' '' \
	  'Name: ingot' 'Description: compiler for neural networks' 'Version: $(VERSION)' \
	  'Libs: -L$${libdir} -lingot -lm -lpthread' 'Cflags: -I$${includedir}' >$@

## make install       PREFIX=/usr/local LIBDIR=/usr/local/lib DESTDIR=
install: all
	@rm -f $(BUILD)/ingot.pc && $(MAKE) --no-print-directory $(BUILD)/ingot.pc
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin include share/man/man1) $(addprefix $(DESTDIR)$(LIBDIR)/,pkgconfig cmake/ingot)
	install -m 755 $(BUILD)/ingot $(DESTDIR)$(PREFIX)/bin/ingot
	install -m 644 $(BUILD)/libingot.a $(DESTDIR)$(LIBDIR)/libingot.a
	install -m 755 $(BUILD)/libingot.so $(DESTDIR)$(LIBDIR)/libingot.so.$(VERSION)
	ln -sf libingot.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libingot.so.$(SOVERSION)
	ln -sf libingot.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libingot.so
	install -m 644 src/ingot.h $(DESTDIR)$(PREFIX)/include/ingot.h
	install -m 644 $(BUILD)/ingot.pc $(DESTDIR)$(LIBDIR)/pkgconfig/ingot.pc
	install -m 644 docs/ingot.1 $(DESTDIR)$(PREFIX)/share/man/man1/ingot.1
	@for to in bash:bash-completion/completions/ingot zsh:zsh/site-functions/_ingot fish:fish/vendor_completions.d/ingot.fish; do \
	  $(BUILD)/ingot completions $${to%%:*} >$(BUILD)/completion || { echo 'note: it does not run here, so no completions'; break; }; \
	  install -D -m 644 $(BUILD)/completion $(DESTDIR)$(PREFIX)/share/$${to#*:} || exit 1; done
	install -m 644 cmake/ingotConfig.cmake $(DESTDIR)$(LIBDIR)/cmake/ingot/ingotConfig.cmake
	@printf '%s\n' 'set(PACKAGE_VERSION $(VERSION))' 'if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)' '  set(PACKAGE_VERSION_COMPATIBLE FALSE)' 'else()' \
	  '  set(PACKAGE_VERSION_COMPATIBLE TRUE)' 'endif()' 'if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)' '  set(PACKAGE_VERSION_EXACT TRUE)' 'endif()' \
	  >$(DESTDIR)$(LIBDIR)/cmake/ingot/ingotConfigVersion.cmake

# ---- archives ----

# What git knows of, as it lies here, or all of an unpacked archive. The same files make the same bytes: one date (SOURCE_DATE_EPOCH, else that
# of the last commit, else that of the archive), one owner, one order.
DIST     = $(BUILD)/dist/ingot-$(VERSION).tar.gz
GIT     := git -c safe.directory='*' # somebody else may own the files
DATE     = $(or $(SOURCE_DATE_EPOCH),$(shell if [ -e .git ]; then $(GIT) log -1 --format=%ct; else stat -c %Y Makefile; fi))
## make dist          an archive of the sources, the same bytes each time: build/dist
dist:
	@mkdir -p $(BUILD)/dist
	$(call say,TAR,$(DIST))
	$(Q)if [ -e .git ]; then $(GIT) ls-files -z; else find . -type d \( -path './build*' -o -name __pycache__ -o -path ./debian \) -prune -o -type f -printf '%P\0'; fi \
	  | LC_ALL=C sort -z >$(BUILD)/dist/files
	@[ -s $(BUILD)/dist/files ] || { echo 'make dist: git lists no files here' >&2; exit 1; }
	$(Q)tar --create --file=$(DIST:.gz=) --null --format=ustar --mtime=@$(DATE) --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
	  --transform='s,^,ingot-$(VERSION)/,' --files-from=$(BUILD)/dist/files
	$(Q)gzip -9nf $(DIST:.gz=)

# Debian packages of that archive, in build/deb: ingot, libingot0 and libingot-dev; tools/debian has what makes them. DEBFULLNAME and DEBEMAIL
# say who does; DEB_BUILD_OPTIONS=nocheck leaves `make check` out.
DEB      = $(BUILD)/deb/ingot-$(VERSION)
MAINTAINER = $(or $(DEBFULLNAME),ingot maintainers) <$(or $(DEBEMAIL),maintainers@ingot.invalid)>
## make deb           packages for Debian: build/deb (needs debhelper)
deb: dist
	@rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb
	$(Q)tar xf $(DIST) -C $(BUILD)/deb
	$(Q)cp -r $(DEB)/tools/debian $(DEB)/debian
	$(Q)sed -i -e 's/@VERSION@/$(VERSION)/g' -e 's/@MAINTAINER@/$(MAINTAINER)/' -e "s/@DATE@/$$(LC_ALL=C date -uR -d @$(DATE))/" -e "s/@YEAR@/$$(date -u +%Y -d @$(DATE))/" \
	  $(addprefix $(DEB)/debian/,control changelog copyright)
	+$(Q)cd $(DEB) && env -u MAKEFLAGS -u MAKELEVEL -u BUILD dpkg-buildpackage --build=binary --no-sign -j$(shell nproc) >../log 2>&1 || { tail -n 30 ../log; exit 1; }
	@rm -rf $(DEB) && ls $(BUILD)/deb/*.deb

.PHONY: docs picture demo install dist deb
