//! New files that are found before what runs the checks: a `unittest.py` of the repo, a runner in its `node_modules`.

use std::collections::BTreeSet;

/// Modules that every Python has; those that begin with `_` are for itself.
const PYTHON: &str = "\
    abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect \
    builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys \
    compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses \
    dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum \
    errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath \
    getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib \
    imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale \
    logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt \
    multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os \
    ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix \
    posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri \
    random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve \
    shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile \
    sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable \
    sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading time timeit \
    tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing \
    unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound \
    wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo annotationlib antigravity bdb \
    this \
    __future__ _abc _aix_support _android_support _apple_support _ast _ast_unparse _asyncio _bisect \
    _blake2 _bootsubprocess _bz2 _codecs _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr \
    _codecs_tw _collections _collections_abc _colorize _compat_pickle _compression _contextvars _crypt \
    _csv _ctypes _curses _curses_panel _datetime _dbm _decimal _elementtree _frozen_importlib \
    _frozen_importlib_external _functools _gdbm _hashlib _heapq _hmac _imp _interpchannels \
    _interpqueues _interpreters _io _ios_support _json _locale _lsprof _lzma _markupbase _md5 _msi \
    _multibytecodec _multiprocessing _opcode _opcode_metadata _operator _osx_support _overlapped \
    _pickle _posixshmem _posixsubprocess _py_abc _py_warnings _pydatetime _pydecimal _pyio _pylong \
    _pyrepl _queue _random _remote_debugging _scproxy _sha1 _sha2 _sha256 _sha3 _sha512 _signal \
    _sitebuiltins _socket _sqlite3 _sre _ssl _stat _statistics _string _strptime _struct _suggestions \
    _symtable _sysconfig _thread _threading_local _tkinter _tokenize _tracemalloc _types _typing _uuid \
    _warnings _weakref _weakrefset _winapi _wmi _zoneinfo _zstd";

/// Libraries that come with every Ruby, by the names that programs require.
const RUBY: &str = "\
    English abbrev base64 benchmark bigdecimal bundler cgi coverage csv date debug delegate did_you_mean \
    digest drb erb error_highlight etc expect fcntl fiddle fileutils find forwardable getoptlong io-console \
    ipaddr irb json kconv logger matrix minitest mkmf monitor mutex_m net objspace observer open-uri open3 \
    openssl optparse optionparser ostruct pathname power_assert pp prettyprint prime prism pstore psych pty \
    racc rake random-formatter rbconfig rdoc readline reline resolv resolv-replace rinda ripper rss rspec \
    rubygems securerandom set shellwords singleton socket stringio strscan syntax_suggest syslog tempfile \
    test-unit thwait time timeout tmpdir tracer tsort un unicode_normalize uri weakref win32ole yaml zlib";

/// Modules that come with every Perl, by their files without the end.
const PERL: &str = "\
    AutoLoader B Carp Config Cwd DB_File DynaLoader Encode English Env Errno Exporter Fcntl FindBin \
    IO MIME Opcode POSIX PerlIO Safe Scalar List Hash Sub SelectSaver SelfLoader Socket Storable Symbol \
    Sys TAP Term Test Test2 Thread UNIVERSAL XSLoader attributes autodie autouse base bigint bignum \
    bigrat blib builtin bytes charnames constant deprecate diagnostics encoding experimental feature \
    fields filetest if integer less lib locale mro ok open ops overload overloading parent re sigtrap \
    sort stable strict subs threads utf8 vars version vmsish warnings";
/// Files of Perl's below folders that programs have, too.
const PERL_FILES: &str = "\
    App/Prove Data/Dumper File/Basename File/Copy File/Find File/Glob File/Path File/Spec File/Temp \
    File/stat Getopt/Long Getopt/Std IPC/Open2 IPC/Open3 Module/Load Module/CoreList Params/Check \
    Text/ParseWords Text/Wrap Text/Tabs Text/Balanced Tie/Array Tie/Hash Tie/Scalar Tie/Handle \
    Time/HiRes Time/Local Time/Piece Unicode/UCD Math/BigInt Digest/MD5 Digest/SHA Benchmark";

/// Modules that run tests of Python, and what those stand on.
const PYTHON_TOOLS: &[&str] = &[
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "exceptiongroup",
    "tomli",
    "py",
    "nose",
    "nose2",
    "hypothesis",
    "coverage",
    "mock",
    "xdist",
    "execnet",
    "attr",
    "attrs",
    "tox",
    "nox",
    "behave",
    "sitecustomize",
    "usercustomize",
    "_distutils_hack",
    "pkg_resources",
    "setuptools",
    "pip",
    "wheel",
];

/// Libraries that tests are written with, as they stand in a repo: the ends of their files, and the folders or names that are
/// theirs alone.
const LIBRARIES: &[(&[&str], &[&str])] = &[
    (&["go"], &["stretchr/testify", "gotest.tools", "onsi/gomega", "onsi/ginkgo", "google/go-cmp"]),
    (
        &["h", "hh", "hpp", "hxx", "c", "cc", "cpp", "cxx", "inc"],
        &[
            "googletest",
            "gtest",
            "gmock",
            "catch2",
            "catch",
            "catch_amalgamated",
            "doctest",
            "cmocka",
            "cppunit",
            "unity",
            "Unity",
            "acutest",
            "criterion",
            "CuTest",
            "cutest",
            "greatest",
            "minunit",
            "munit",
            "utest",
            "lest",
            "boost/test",
        ],
    ),
    (&["php", "phar"], &["phpunit", "PHPUnit"]),
    (&["rb"], &["minitest", "rspec", "test-unit", "test/unit"]),
    (&["sh", "bash"], &["shunit2", "bats-core", "bats-assert", "bats-support", "shellspec"]),
    (&["lua"], &["luaunit", "busted", "luassert"]),
    (&["pm"], &["Test/More", "Test/Simple", "Test/Builder", "Test2", "TAP"]),
    (&["java", "kt", "class"], &["org/junit", "junit/framework", "org/mockito", "org/testng", "org/assertj"]),
];

/// Ends of names of what compilers make: a commit that holds one keeps it from being built.
const OBJECTS: &[&str] =
    &["o", "obj", "lo", "class", "beam", "rlib", "rmeta", "cmo", "cmi", "cmx", "hi", "elc"];

/// Headers of the system that tests in C go by.
const HEADERS: &[&str] =
    &["assert.h", "cassert", "check.h", "setjmp.h", "stdbool.h", "stdio.h", "stdlib.h", "string.h"];

/// Archives of libraries, by the beginnings of their names.
const ARCHIVES: &[&str] = &["junit", "mockito", "testng", "assertj", "hamcrest", "surefire"];

/// Folders that a setup fills; what a commit holds of them nobody installed.
const INSTALLED: &[&str] = &[
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".gradle",
    ".eggs",
    "site-packages",
    "bower_components",
];

/// Whether the file `path` stands where a runner of checks, or what it loads, would be found: a new one below one of
/// `folders`, from which modules are loaded, one of a library for tests, or one in a place for installed things. `there` knows
/// the files of the start: what was found first then takes nothing's place.
pub fn shadows(path: &str, new: bool, folders: &BTreeSet<String>, there: &dyn Fn(&str) -> bool) -> bool {
    let installed = path
        .split('/')
        .any(|part| INSTALLED.contains(&part) || part.ends_with(".egg-info") || part.ends_with(".dist-info"));
    installed
        || is_of_library(path)
        || (new && is_found_by_compilers(path))
        || (new && folders.iter().any(|folder| is_runner_module(path, folder, there)))
}

/// Whether a file is found by a compiler, or by make, before what it would take or build itself.
fn is_found_by_compilers(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    HEADERS.contains(&name) || OBJECTS.contains(&end)
}

/// Whether a file that came while checks ran is a module that is found before what runs them, below one of `folders`.
pub fn takes_runners_place(path: &str, folders: &BTreeSet<String>, there: &dyn Fn(&str) -> bool) -> bool {
    folders.iter().any(|folder| is_runner_module(path, folder, there))
}

/// The source that a compiled file of Python stands for: `a/test_b.py` for `a/__pycache__/test_b.cpython-312.pyc`.
pub fn compiled_from(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/')?;
    let above =
        folder.strip_suffix("__pycache__").filter(|above| above.is_empty() || above.ends_with('/'))?;
    let stem = name.strip_suffix(".pyc")?.split('.').next()?;
    Some(format!("{above}{stem}.py"))
}

fn is_of_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    if matches!(end, "jar" | "gem") {
        return ARCHIVES.iter().any(|archive| stem.starts_with(archive));
    }
    // Whole parts of the path; the name without its end.
    let whole = format!("/{}/", path.strip_suffix(&format!(".{end}")).unwrap_or(path));
    LIBRARIES
        .iter()
        .filter(|(ends, _)| ends.contains(&end))
        .any(|(_, words)| words.iter().any(|word| whole.contains(&format!("/{word}/"))))
}

fn is_runner_module(path: &str, folder: &str, there: &dyn Fn(&str) -> bool) -> bool {
    let below = match folder {
        "" => Some(path),
        folder => path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
    };
    let Some(below) = below else { return false };
    if let Some(known) = is_library_module(below, folder) {
        return known;
    }
    let python = [".py", ".pyc", ".so", ".pyd"].iter().any(|end| below.ends_with(end));
    let module = below.split(['/', '.']).next().unwrap_or_default();
    if !python || !(PYTHON_TOOLS.contains(&module) || PYTHON.split(' ').any(|known| known == module)) {
        return false;
    }
    // A module of that name that stood there at the start has taken the place long ago.
    let top = if folder.is_empty() { module.to_owned() } else { format!("{folder}/{module}") };
    !there(&format!("{top}/__init__.py")) && !there(&format!("{top}.py"))
}

/// Whether a file of Ruby or Perl, so far below a folder of modules, has the name of a library of the language; `None` for others.
fn is_library_module(below: &str, folder: &str) -> Option<bool> {
    let has = |list: &str, name: &str| list.split_whitespace().any(|known| known == name);
    if let Some(name) = below.strip_suffix(".rb") {
        // Neither looks in the folder that it is started in.
        return Some(!folder.is_empty() && has(RUBY, name));
    }
    let name = below.strip_suffix(".pm")?;
    let top = name.split('/').next().unwrap_or(name);
    Some(!folder.is_empty() && (has(PERL, top) || has(PERL_FILES, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_files_are_known_by_their_sources() {
        let from = |path: &str| compiled_from(path);
        assert_eq!(from("a/__pycache__/test_b.cpython-312.pyc").as_deref(), Some("a/test_b.py"));
        assert_eq!(from("__pycache__/b.cpython-312-pytest-8.0.pyc").as_deref(), Some("b.py"));
        assert_eq!(from("a/b.pyc"), None);
    }

    #[test]
    fn what_is_found_before_a_runner_is_told_from_product() {
        let folders: BTreeSet<String> = ["", "src", "tools", "lib"].map(str::to_owned).into();
        let there = |path: &str| path == "src/http/__init__.py";
        for (path, new, yes) in [
            ("unittest/__main__.py", true, true),
            ("pytest.py", true, true),
            ("json.cpython-312-x86_64-linux-gnu.so", true, true),
            ("tools/random.py", true, true),
            ("node_modules/.bin/node", true, true),
            ("plug.egg-info/entry_points.txt", true, true),
            ("lib/Test/More.pm", true, true),
            ("vendor/github.com/stretchr/testify/assert/assertions.go", false, true),
            ("third_party/catch.hpp", false, true),
            ("src/test/java/org/junit/Assert.java", true, true),
            ("libs/junit-4.13.jar", true, true),
            ("src/test_part.o", true, true),
            ("src/test_part.o", false, false),
            ("include/assert.h", true, true),
            ("include/assertions.h", true, false),
            ("app/types.py", true, false),
            ("types/index.ts", true, false),
            ("part.py", true, false),
            ("random.py", false, false),
            ("src/http/client.py", false, false),
            ("src/http/server.py", true, false),
            ("app/junit_report.py", true, false),
            ("app/junit/report.py", true, false),
            ("src/mockito_like.go", true, false),
            ("docs/rspec.md", true, false),
            ("_weakrefset.py", true, true),
            ("_version.py", true, false),
            ("lib/mutex_m.rb", true, true),
            ("lib/shop/logger.rb", true, false),
            ("lib/part.rb", true, false),
            ("set.rb", true, false),
            ("lib/Scalar/Util.pm", true, true),
            ("lib/File/Spec.pm", true, true),
            ("lib/File/Shop.pm", true, false),
            ("lib/Shop.pm", true, false),
        ] {
            assert_eq!(shadows(path, new, &folders, &there), yes, "{path}");
        }
    }
}
