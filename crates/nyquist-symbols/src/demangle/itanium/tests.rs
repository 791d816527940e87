//! Names as `c++filt --no-verbose` of binutils 2.40 prints them, and names that are made to be slow or large.

use super::demangle;

const NAMES: &[(&str, &str)] = &[
    ("_Z4refsIJcsiEEvDpRKT_", "void refs<char, short, int>(char const&, short const&, int const&)"),
    ("_ZN1AIiE4refsIJcsEJEEEvDpRKT_", "void A<int>::refs<char, short>(char const&, short const&)"),
    (
        "_ZN4llvm15AnalysisManagerINS_6ModuleEJEE5clearERS1_NS_9StringRefE",
        "llvm::AnalysisManager<llvm::Module>::clear(llvm::Module&, llvm::StringRef)",
    ),
    ("_ZThn16_N1A1fIiEEvT_", "non-virtual thunk to void A::f<int>(int)"),
    ("_ZTv0_n24_N1A1fEv", "virtual thunk to A::f()"),
    ("_ZTCN1AE8_1B", "construction vtable for B-in-A"),
    ("_ZGVZ1fvE1x", "guard variable for f()::x"),
    ("_ZZ1fiE1x_0", "f(int)::x"),
    ("_ZZN1A1fEiEd0_NKUlvE_clEv", "A::f(int)::{default arg#2}::{lambda()#1}::operator()() const"),
    ("_Z1fPKA4_c", "f(char const (*) [4])"),
    ("_Z1fM1AKFivE", "f(int (A::*)() const)"),
    ("_Z1fPFPFvvEiE", "f(void (*(*)(int))())"),
    ("_Z1fIiEPFvvEv", "void (*f<int>())()"),
    ("_ZdlPv", "operator delete(void*)"),
    ("_ZN1AltIiEEvT_", "void A::operator< <int>(int)"),
    ("_ZN1AcvT_IiEEv", "A::operator int<int>()"),
    ("_ZNK3fooIJiEEcvT_IcEEv", "foo<int>::operator char<char>() const"),
    ("_Z1fDv4_f", "f(float __vector(4))"),
    ("_Z1fIXtlA2_iLi1ELi2EEEEvv", "void f<int [2]{1, 2}>()"),
    ("_Z1fILin5EEvv", "void f<-5>()"),
    ("_Z1fILj5ELm6ELb1ELc65EEvv", "void f<5u, 6ul, true, (char)65>()"),
    ("_Z1fIL1E3EEvv", "void f<(E)3>()"),
    ("_Z1fILd4014000000000000EEvv", "void f<(double)[4014000000000000]>()"),
    ("_ZN3fooB5cxx11Ev", "foo[abi:cxx11]()"),
    (
        "_ZNSsC1ERKSs",
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string(std::string const&)",
    ),
    ("_ZNSolsEi", "std::ostream::operator<<(int)"),
    ("_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()"),
    ("_ZDC1a1bE", "[a, b]"),
    ("_Zli2_sy", "operator\"\" _s(unsigned long long)"),
    ("_GLOBAL__I_x", "global constructors keyed to x"),
    ("_ZNKRSt8optionalIiE5valueEv", "std::optional<int>::value() const &"),
    ("_Z1fIiEDTcl1gfp_EET_", "decltype (g({parm#1})) f<int>(int)"),
    ("_Z3addIiEDTplfp_fp0_ET_S1_", "decltype ({parm#1}+{parm#2}) add<int>(int, int)"),
    ("_Z1fPVKi", "f(int const volatile*)"),
    ("_ZN1A1fEv.part.0.cold", "A::f() [clone .part.0] [clone .cold]"),
    ("_Z1fIJEEvDpT_", "void f<>()"),
    ("_Z1fIXadL_Z1gvEEEvv", "void f<&(g())>()"),
    ("_Z1fIXadL_ZN1A1gEvEEEvv", "void f<&A::g>()"),
    ("_Z1fIXadL_ZNK1A1gEvEEEvv", "void f<&(A::g() const)>()"),
    ("_Z1fILDnEEvv", "void f<decltype(nullptr)>()"),
    ("_Z1fIRiEvOT_", "void f<int&>(int&)"),
    ("_Z1fIKiEvRKT_", "void f<int const>(int const&)"),
    ("_Z1fIFvvEEvPT_", "void f<void ()>(void (*)())"),
    ("_Z1fIJPFvvERA2_iEEvDpPT_", "void f<void (*)(), int (&) [2]>(void (**)(), int (&*) [2])"),
    (
        "_ZZ1fIiEvT_ENKUlOT_E_clIcEEDaS2_",
        "auto f<int>(int)::{lambda(auto:1&&)#1}::operator()<char>(char&&) const",
    ),
    (
        "_ZSteqIcEN9__gnu_cxx11__enable_ifIXsrSt9__is_charIT_E7__valueEbE6__typeERKNSt7__cxx1112basic_stringIS3_St11char_traitsIS3_ESaIS3_EEESD_",
        "__gnu_cxx::__enable_if<std::__is_char<char>::__value, bool>::__type std::operator==<char>(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&, std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const)",
    ),
    (
        "_ZN4llvm10checkedAddIiEENSt9enable_ifIXsr3std9is_signedIT_EE5valueENS_8OptionalIS2_EEE4typeES2_S2_",
        "std::enable_if<std::is_signed<int>::value, llvm::Optional<int> >::type llvm::checkedAdd<int>(int, int)",
    ),
    (
        "_ZNSt12__shared_ptrIiLN9__gnu_cxx12_Lock_policyE2EEaSIiEENSt9enable_ifIXsrSt20__sp_compatible_withIPT_PiE5valueERS2_E4typeEOS_IS5_LS1_2EE",
        "std::enable_if<std::__sp_compatible_with<int*, int*>::value, std::__shared_ptr<int, (__gnu_cxx::_Lock_policy)2>&>::type std::__shared_ptr<int, (__gnu_cxx::_Lock_policy)2>::operator=<int>(std::__shared_ptr<std::__sp_compatible_with, (__gnu_cxx::_Lock_policy)2>&&)",
    ),
];

#[test]
fn names_are_what_cxxfilt_prints() {
    for (mangled, expected) in NAMES {
        assert_eq!(demangle(mangled).as_deref(), Some(*expected), "{mangled}");
    }
}

/// `template <class F> void outer(F&& f) { f(0); }` is called by `template <class T> void inner(T&& t)` with the lambda
/// `[&](auto&& x) { ... }`. c++filt prints `int&` in place of both types with `&&`, which is what `T` stands for.
#[test]
fn a_lambda_has_not_its_functions_arguments() {
    for (mangled, expected) in [
        (
            "_Z5outerIZ5innerIRiEvOT_EUlS3_E_EvS3_",
            "void outer<inner<int&>(int&)::{lambda(auto:1&&)#1}>(inner<int&>(int&)::{lambda(auto:1&&)#1}&&)",
        ),
        (
            "_ZZ5innerIRiEvOT_ENKUlS2_E_clIiEEDaS2_",
            "auto inner<int&>(int&)::{lambda(auto:1&&)#1}::operator()<int>(int&&) const",
        ),
    ] {
        assert_eq!(demangle(mangled).as_deref(), Some(expected));
    }
}

/// Every shortened and every changed name ends, and gives a name or nothing.
#[test]
fn damaged_names_end() {
    for (mangled, _) in NAMES {
        for at in 0..mangled.len() {
            demangle(&mangled[..at]);
            for letter in ["_", "E", "I", "S_", "T_", "J", "Dp", "sr", "L", "9"] {
                demangle(&format!("{}{letter}{}", &mangled[..at], &mangled[at + 1..]));
            }
        }
    }
}

#[test]
fn nested_names_take_little_stack() {
    let demangle_in_a_small_thread = |name: String| {
        let thread = std::thread::Builder::new().stack_size(1 << 20);
        thread.spawn(move || demangle(&name)).unwrap().join().unwrap()
    };
    for (before, part, behind) in [
        ("_Z1f", "P", "i"),
        ("_Z1f", "1AI", "i"),
        ("_Z", "Z", "1f"),
        ("_Z1f", "F", "v"),
        ("_Z1f", "M1A", "i"),
        ("_Z1fIX", "nt", "Lb1EEEvv"),
        ("_Z1fIX", "sp", "Lb1EEEvv"),
        ("_Z1fI", "J", "i"),
        ("_ZN", "cv", "i"),
        ("_Z1fIX", "L_Z", "1f"),
        ("_Z", "GTt", "1fv"),
        ("_Z", "Th0_", "1fv"),
        ("_Z1f", "U1xI", "i"),
        ("_Z1f", "DO", "i"),
        ("_Z1f", "A", "i"),
        ("", "_GLOBAL__I_", "_Z1fv"),
        ("_Z1f", "NUl", "i"),
    ] {
        for count in [40, 100, 20_000] {
            demangle_in_a_small_thread(format!("{before}{}{behind}", part.repeat(count)));
        }
    }
    let deep = format!("_Z1f{}i", "P".repeat(100));
    assert_eq!(demangle(&deep), Some(format!("f(int{})", "*".repeat(100))));
}

/// Each part of these names doubles the text, or the ways through the tree.
#[test]
fn doubling_names_end() {
    let doubling = |first: &str, next: &dyn Fn(&str, &str) -> String| {
        let mut name = String::from(first);
        let mut id = String::from("_");
        for number in 0..60 {
            name += &next(&format!("S{id}"), &id);
            id = format!("{}_", radix_36(number));
        }
        name
    };
    let pairs = doubling("_Z1f1AIiE", &|last, _| format!("S_I{last}{last}E"));
    demangle(&pairs);
    let packs = doubling("_Z1fIJEEv", &|last, _| format!("S_IDpT_{last}{last}E"));
    demangle(&packs);
    let functions = doubling("_Z1fi", &|last, _| format!("F{last}{last}E"));
    demangle(&functions);
}

fn radix_36(number: u32) -> String {
    let digit = |digit: u32| char::from_digit(digit, 36).unwrap().to_ascii_uppercase();
    if number < 36 { digit(number).into() } else { format!("{}{}", digit(number / 36), digit(number % 36)) }
}
