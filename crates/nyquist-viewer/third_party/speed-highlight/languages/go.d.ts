declare const _default: ({
    match: RegExp;
    type: "cmnt";
    sub: string;
    expand?: undefined;
} | {
    type: "str";
    match: RegExp;
    sub?: undefined;
    expand?: undefined;
} | {
    expand: "str";
    match?: undefined;
    type?: undefined;
    sub?: undefined;
} | {
    expand: "num";
    match?: undefined;
    type?: undefined;
    sub?: undefined;
} | {
    type: "kwd";
    match: RegExp;
    sub?: undefined;
    expand?: undefined;
} | {
    type: "func";
    match: RegExp;
    sub?: undefined;
    expand?: undefined;
} | {
    type: "class";
    match: RegExp;
    sub?: undefined;
    expand?: undefined;
} | {
    type: "oper";
    match: RegExp;
    sub?: undefined;
    expand?: undefined;
})[];
export default _default;
//# sourceMappingURL=go.d.ts.map